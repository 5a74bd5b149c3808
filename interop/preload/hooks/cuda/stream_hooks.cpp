// Streams of the driver's: see ../hook_streams.hpp.
#include "interop/preload/hooks/hook_streams.hpp"

using namespace cistern::preload;
using namespace cistern::preload::cuda;

CISTERN_HOOK CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  const Entry entry;
  return created(entry, entry.pass(&Functions::cuStreamCreate, stream, flags), stream);
}

CISTERN_HOOK CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  const Entry entry;
  return created(entry, entry.pass(&Functions::cuStreamCreateWithPriority, stream, flags, priority),
                 stream);
}

CISTERN_HOOK CUresult cuGreenCtxStreamCreate(CUstream* stream, CUgreenCtx green, unsigned flags,
                                             int priority) {
  const Entry entry;
  return created(entry,
                 entry.pass(&Functions::cuGreenCtxStreamCreate, stream, green, flags, priority),
                 stream);
}

CISTERN_HOOK CUresult cuStreamDestroy_v2(CUstream stream) {
  const Entry entry;
  destroying(entry, stream);
  return entry.pass(&Functions::cuStreamDestroy_v2, stream);
}

// ---- The host waits -----------------------------------------------------------------------------

CISTERN_HOOK CUresult cuCtxSynchronize() {
  const Entry entry;
  return waitFor(entry, nullptr, [&] { return entry.pass(&Functions::cuCtxSynchronize); });
}

CISTERN_HOOK CUresult cuStreamSynchronize(CUstream stream) {
  return waitForStream(stream, false, [&](const Entry& entry) {
    return entry.pass(&Functions::cuStreamSynchronize, stream);
  });
}

CISTERN_HOOK CUresult cuStreamSynchronize_ptsz(CUstream stream) {
  return waitForStream(stream, true, [&](const Entry& entry) {
    return entry.pass(&Functions::cuStreamSynchronize_ptsz, stream);
  });
}

// ---- Captures -----------------------------------------------------------------------------------

CISTERN_HOOK CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return beginCapture([&](const Entry& entry) {
    return entry.pass(&Functions::cuStreamBeginCapture_v2, stream, mode);
  });
}

CISTERN_HOOK CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  return beginCapture([&](const Entry& entry) {
    return entry.pass(&Functions::cuStreamBeginCapture_v2_ptsz, stream, mode);
  });
}

CISTERN_HOOK CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
                                                  const CUgraphNode* dependencies,
                                                  const CUgraphEdgeData* edges, size_t count,
                                                  CUstreamCaptureMode mode) {
  return beginCapture([&](const Entry& entry) {
    return entry.pass(&Functions::cuStreamBeginCaptureToGraph, stream, graph, dependencies, edges,
                      count, mode);
  });
}

CISTERN_HOOK CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph,
                                                       const CUgraphNode* dependencies,
                                                       const CUgraphEdgeData* edges, size_t count,
                                                       CUstreamCaptureMode mode) {
  return beginCapture([&](const Entry& entry) {
    return entry.pass(&Functions::cuStreamBeginCaptureToGraph_ptsz, stream, graph, dependencies,
                      edges, count, mode);
  });
}

CISTERN_HOOK CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return endCapture([&](const Entry& entry) {
    return entry.pass(&Functions::cuStreamEndCapture, stream, graph);
  });
}

CISTERN_HOOK CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
  return endCapture([&](const Entry& entry) {
    return entry.pass(&Functions::cuStreamEndCapture_ptsz, stream, graph);
  });
}
