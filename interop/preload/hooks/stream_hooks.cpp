// Streams that the program makes and destroys, and captures that it begins: what the order of a
// context rests on (driver/context_order.hpp).
#include "interop/preload/hooks/entry.hpp"

using namespace cistern::preload;

namespace {

CUresult created(const Entry& entry, CUresult result, const CUstream* stream) {
  if (result != CUDA_SUCCESS || !entry.serves()) return result;
  if (Context* const context = contexts().current()) context->order().created(*stream);
  return result;
}

// What has to be in order before the capture is put into streams now.
template <class Begin>
CUresult beginCapture(Begin begin) {
  return contexts().captures().begin([&] {
    if (ContextOrder* const order = ContextOrder::followed()) order->beforeCapture();
    return begin();
  });
}

// The program waits: `wait` calls the driver. What it has waited for needs no order any more.
template <class Wait>
CUresult waitFor(const Entry& entry, const CUstream* stream, Wait wait) {
  ContextOrder* const order = entry.serves() ? ContextOrder::followed() : nullptr;
  CUcontext now = nullptr;
  if (order == nullptr || entry.pass(&Functions::cuCtxGetCurrent, &now) != CUDA_SUCCESS ||
      now != order->context() || (stream != nullptr && *stream == CU_STREAM_PER_THREAD)) {
    return wait();
  }
  const ContextOrder::Waiting since = order->waiting();
  const CUresult result = wait();
  if (result == CUDA_SUCCESS) order->waited(since, stream);
  return result;
}

// The allocator asks nothing of the stream any more.
void forget(Context& context, CUstream stream) {
  Serving* const serving = context.serving();
  if (serving == nullptr) return;
  try {
    serving->allocator.forgetStream(cistern::Stream(stream));
  } catch (const std::exception&) {
    // It is being captured: to destroy it breaks the capture anyway.
  }
}

}  // namespace

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
  if (entry.serves() && stream != nullptr && stream != CU_STREAM_LEGACY &&
      stream != CU_STREAM_PER_THREAD) {
    contexts().destroying(stream, [&](Context& context) { forget(context, stream); });
  }
  return entry.pass(&Functions::cuStreamDestroy_v2, stream);
}

// ---- The host waits -----------------------------------------------------------------------------

CISTERN_HOOK CUresult cuCtxSynchronize() {
  const Entry entry;
  return waitFor(entry, nullptr, [&] { return entry.pass(&Functions::cuCtxSynchronize); });
}

CISTERN_HOOK CUresult cuStreamSynchronize(CUstream stream) {
  const Entry entry;
  const CUstream meant = streamMeant(stream, false);
  return waitFor(entry, &meant,
                 [&] { return entry.pass(&Functions::cuStreamSynchronize, stream); });
}

CISTERN_HOOK CUresult cuStreamSynchronize_ptsz(CUstream stream) {
  const Entry entry;
  const CUstream meant = streamMeant(stream, true);
  return waitFor(entry, &meant,
                 [&] { return entry.pass(&Functions::cuStreamSynchronize_ptsz, stream); });
}

// ---- Captures -----------------------------------------------------------------------------------

CISTERN_HOOK CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  const Entry entry;
  return beginCapture(
      [&] { return entry.pass(&Functions::cuStreamBeginCapture_v2, stream, mode); });
}

CISTERN_HOOK CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  const Entry entry;
  return beginCapture(
      [&] { return entry.pass(&Functions::cuStreamBeginCapture_v2_ptsz, stream, mode); });
}

CISTERN_HOOK CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
                                                  const CUgraphNode* dependencies,
                                                  const CUgraphEdgeData* edges, size_t count,
                                                  CUstreamCaptureMode mode) {
  const Entry entry;
  return beginCapture([&] {
    return entry.pass(&Functions::cuStreamBeginCaptureToGraph, stream, graph, dependencies, edges,
                      count, mode);
  });
}

CISTERN_HOOK CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph,
                                                       const CUgraphNode* dependencies,
                                                       const CUgraphEdgeData* edges, size_t count,
                                                       CUstreamCaptureMode mode) {
  const Entry entry;
  return beginCapture([&] {
    return entry.pass(&Functions::cuStreamBeginCaptureToGraph_ptsz, stream, graph, dependencies,
                      edges, count, mode);
  });
}

CISTERN_HOOK CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  const Entry entry;
  const CUresult result = entry.pass(&Functions::cuStreamEndCapture, stream, graph);
  contexts().captures().ended(result);
  return result;
}

CISTERN_HOOK CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
  const Entry entry;
  const CUresult result = entry.pass(&Functions::cuStreamEndCapture_ptsz, stream, graph);
  contexts().captures().ended(result);
  return result;
}
