// HIP's streams: see ../hook_streams.hpp.
#include "interop/preload/hooks/hook_streams.hpp"

using namespace cistern::preload::hip;

CISTERN_HOOK hipError_t hipStreamCreate(hipStream_t* stream) {
  const Entry entry;
  return created(entry, entry.pass(&Functions::hipStreamCreate, stream), stream);
}

CISTERN_HOOK hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned flags) {
  const Entry entry;
  return created(entry, entry.pass(&Functions::hipStreamCreateWithFlags, stream, flags), stream);
}

CISTERN_HOOK hipError_t hipStreamCreateWithPriority(hipStream_t* stream, unsigned flags,
                                                    int priority) {
  const Entry entry;
  return created(
      entry, entry.pass(&Functions::hipStreamCreateWithPriority, stream, flags, priority), stream);
}

CISTERN_HOOK hipError_t hipExtStreamCreateWithCUMask(hipStream_t* stream, uint32_t words,
                                                     const uint32_t* mask) {
  const Entry entry;
  return created(entry, entry.pass(&Functions::hipExtStreamCreateWithCUMask, stream, words, mask),
                 stream);
}

CISTERN_HOOK hipError_t hipStreamDestroy(hipStream_t stream) {
  const Entry entry;
  destroying(entry, stream);
  return entry.pass(&Functions::hipStreamDestroy, stream);
}

// ---- The host waits -----------------------------------------------------------------------------

CISTERN_HOOK hipError_t hipDeviceSynchronize() {
  const Entry entry;
  return waitFor(entry, nullptr, [&] { return entry.pass(&Functions::hipDeviceSynchronize); });
}

CISTERN_HOOK hipError_t hipCtxSynchronize() {
  const Entry entry;
  return waitFor(entry, nullptr, [&] { return entry.pass(&Functions::hipCtxSynchronize); });
}

CISTERN_HOOK hipError_t hipStreamSynchronize(hipStream_t stream) {
  return waitForStream(stream, false, [&](const Entry& entry) {
    return entry.pass(&Functions::hipStreamSynchronize, stream);
  });
}

extern "C" hipError_t streamSynchronizeSpt(hipStream_t) __asm__("hipStreamSynchronize_spt");
CISTERN_HOOK hipError_t streamSynchronizeSpt(hipStream_t stream) {
  return waitForStream(stream, true, [&](const Entry& entry) {
    return entry.pass(&Functions::hipStreamSynchronize_spt, stream);
  });
}

// ---- Captures -----------------------------------------------------------------------------------

CISTERN_HOOK hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode) {
  return beginCapture([&](const Entry& entry) {
    return entry.pass(&Functions::hipStreamBeginCapture, stream, mode);
  });
}

extern "C" hipError_t beginCaptureSpt(hipStream_t,
                                      hipStreamCaptureMode) __asm__("hipStreamBeginCapture_spt");
CISTERN_HOOK hipError_t beginCaptureSpt(hipStream_t stream, hipStreamCaptureMode mode) {
  return beginCapture([&](const Entry& entry) {
    return entry.pass(&Functions::hipStreamBeginCapture_spt, stream, mode);
  });
}

// The header may not declare it, nor the type of its edges.
extern "C" hipError_t beginCaptureToGraph(
    hipStream_t, hipGraph_t, const hipGraphNode_t*, const void*, size_t,
    hipStreamCaptureMode) __asm__("hipStreamBeginCaptureToGraph");
CISTERN_HOOK hipError_t beginCaptureToGraph(hipStream_t stream, hipGraph_t graph,
                                            const hipGraphNode_t* dependencies, const void* edges,
                                            size_t count, hipStreamCaptureMode mode) {
  return beginCapture([&](const Entry& entry) {
    return entry.pass(&Functions::hipStreamBeginCaptureToGraph, stream, graph, dependencies, edges,
                      count, mode);
  });
}

CISTERN_HOOK hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t* graph) {
  return endCapture([&](const Entry& entry) {
    return entry.pass(&Functions::hipStreamEndCapture, stream, graph);
  });
}

extern "C" hipError_t endCaptureSpt(hipStream_t, hipGraph_t*) __asm__("hipStreamEndCapture_spt");
CISTERN_HOOK hipError_t endCaptureSpt(hipStream_t stream, hipGraph_t* graph) {
  return endCapture([&](const Entry& entry) {
    return entry.pass(&Functions::hipStreamEndCapture_spt, stream, graph);
  });
}
