// Streams of the driver's: see hook_streams.hpp. The last words of a name are the spelling for
// per-thread default streams. Where HIP's header may not declare a function, or not with these
// types, the hook has another name in C++.
#include "interop/preload/hooks/hook_streams.hpp"

using namespace cistern::preload::GPU_NAMESPACE;

CISTERN_HOOK Code GPU_NAME(cuStreamCreate, hipStreamCreateWithFlags)(StreamHandle* stream,
                                                                     unsigned flags) {
  return createStream(&Functions::GPU_NAME(cuStreamCreate, hipStreamCreateWithFlags), stream,
                      flags);
}

CISTERN_HOOK Code GPU_NAME(cuStreamCreateWithPriority,
                           hipStreamCreateWithPriority)(StreamHandle* stream, unsigned flags,
                                                        int priority) {
  return createStream(&Functions::GPU_NAME(cuStreamCreateWithPriority, hipStreamCreateWithPriority),
                      stream, flags, priority);
}

CISTERN_HOOK Code GPU_NAME(cuStreamDestroy_v2, hipStreamDestroy)(StreamHandle stream) {
  const Entry entry;
  destroying(entry, stream);
  return entry.pass(&Functions::GPU_NAME(cuStreamDestroy_v2, hipStreamDestroy), stream);
}

// ---- The host waits -----------------------------------------------------------------------------

CISTERN_HOOK Code GPU_NAME(cuCtxSynchronize, hipCtxSynchronize)() {
  return waitForDevice(&Functions::GPU_NAME(cuCtxSynchronize, hipCtxSynchronize));
}

CISTERN_HOOK Code GPU_NAME(cuStreamSynchronize, hipStreamSynchronize)(StreamHandle stream) {
  return waitForStream(&Functions::GPU_NAME(cuStreamSynchronize, hipStreamSynchronize), stream,
                       false);
}

extern "C" Code synchronizeOfThread(StreamHandle) __asm__(GPU_NAME("cuStreamSynchronize_ptsz",
                                                                   "hipStreamSynchronize_spt"));
CISTERN_HOOK Code synchronizeOfThread(StreamHandle stream) {
  return waitForStream(&Functions::GPU_NAME(cuStreamSynchronize_ptsz, hipStreamSynchronize_spt),
                       stream, true);
}

// ---- Captures -----------------------------------------------------------------------------------

using CaptureMode = GPU_NAME(CUstreamCaptureMode, hipStreamCaptureMode);
using GraphHandle = GPU_NAME(CUgraph, hipGraph_t);
using Node = GPU_NAME(CUgraphNode, hipGraphNode_t);
using Edge = GPU_NAME(CUgraphEdgeData, void);

CISTERN_HOOK Code GPU_NAME(cuStreamBeginCapture_v2, hipStreamBeginCapture)(StreamHandle stream,
                                                                           CaptureMode mode) {
  return beginCapture(&Functions::GPU_NAME(cuStreamBeginCapture_v2, hipStreamBeginCapture), stream,
                      mode);
}

extern "C" Code beginCaptureOfThread(StreamHandle,
                                     CaptureMode) __asm__(GPU_NAME("cuStreamBeginCapture_v2_ptsz",
                                                                   "hipStreamBeginCapture_spt"));
CISTERN_HOOK Code beginCaptureOfThread(StreamHandle stream, CaptureMode mode) {
  return beginCapture(&Functions::GPU_NAME(cuStreamBeginCapture_v2_ptsz, hipStreamBeginCapture_spt),
                      stream, mode);
}

extern "C" Code beginCaptureToGraph(StreamHandle, GraphHandle, const Node*, const Edge*, size_t,
                                    CaptureMode) __asm__(GPU_NAME("cuStreamBeginCaptureToGraph",
                                                                  "hipStreamBeginCaptureToGraph"));
CISTERN_HOOK Code beginCaptureToGraph(StreamHandle stream, GraphHandle graph,
                                      const Node* dependencies, const Edge* edges, size_t count,
                                      CaptureMode mode) {
  return beginCapture(
      &Functions::GPU_NAME(cuStreamBeginCaptureToGraph, hipStreamBeginCaptureToGraph), stream,
      graph, dependencies, edges, count, mode);
}

CISTERN_HOOK Code GPU_NAME(cuStreamEndCapture, hipStreamEndCapture)(StreamHandle stream,
                                                                    GraphHandle* graph) {
  return endCapture(&Functions::GPU_NAME(cuStreamEndCapture, hipStreamEndCapture), stream, graph);
}

extern "C" Code endCaptureOfThread(StreamHandle,
                                   GraphHandle*) __asm__(GPU_NAME("cuStreamEndCapture_ptsz",
                                                                  "hipStreamEndCapture_spt"));
CISTERN_HOOK Code endCaptureOfThread(StreamHandle stream, GraphHandle* graph) {
  return endCapture(&Functions::GPU_NAME(cuStreamEndCapture_ptsz, hipStreamEndCapture_spt), stream,
                    graph);
}
