// cudaMallocAsync and cudaFreeAsync. Each has two spellings, which differ in what stream 0 is.
#include "interop/preload/hooks/serve.hpp"
#include "interop/preload/served/pools.hpp"

using namespace cistern::preload;

namespace {

constexpr bool kPerThread = true;

// A capture makes nodes of these calls: the driver's.
bool isCaptured(const Entry& entry, CUstream stream) {
  if (!contexts().captures().maybe()) return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = entry.pass(&Functions::cuStreamIsCapturing, stream, &status);
  return result != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

// A per-thread default stream has memory that every stream may use: one handle names one stream for
// each thread.
cistern::Stream heapOf(CUstream stream) {
  return stream == CU_STREAM_PER_THREAD ? cistern::Stream{} : cistern::Stream(stream);
}

// Whether Cistern is to serve it; else why not.
bool mayServe(const Entry& entry, CUstream stream, CUmemoryPool pool) {
  if (isCaptured(entry, stream)) {
    passed(Passed::kGraph);
    return false;
  }
  if (pool != nullptr ? !isDefaultPool(pool) : !defaultPoolIsCurrent()) {
    passed(Passed::kPool);
    return false;
  }
  return true;
}

template <class Pass>
CUresult allocate(const Entry& entry, CUdeviceptr* out, size_t bytes, CUstream stream,
                  CUmemoryPool pool, Pass pass) {
  if (!entry.serves() || out == nullptr || bytes == 0) return pass();
  if (!mayServe(entry, stream, pool)) return withRoom(entry, pass);
  Timed timed(Served::kMallocAsync);
  Context* const context = contexts().currentServed();
  if (context == nullptr) {
    passed(Passed::kRefused);
    return pass();
  }
  const CUresult result = serveAllocation(contexts(), *context, out, bytes, heapOf(stream), timed);
  timed.ended();
  return result;
}

template <class Pass>
CUresult free(const Entry& entry, CUdeviceptr pointer, CUstream stream, Pass pass) {
  if (!entry.serves() || pointer == 0 || isCaptured(entry, stream)) return pass();
  Timed timed(Served::kFreeAsync);
  timed.byItself();
  const std::optional<ServedBlock> block = takeBlock(contexts(), pointer);
  if (!block) {
    if (isWrongFree(pointer)) return CUDA_ERROR_INVALID_VALUE;
    return pass();
  }
  freeAfter(*block, pointer, stream);
  timed.ended();
  return CUDA_SUCCESS;
}

}  // namespace

CISTERN_HOOK CUresult cuMemAllocAsync(CUdeviceptr* out, size_t bytes, CUstream stream) {
  const Entry entry;
  return allocate(entry, out, bytes, streamMeant(stream, !kPerThread), nullptr,
                  [&] { return entry.pass(&Functions::cuMemAllocAsync, out, bytes, stream); });
}

CISTERN_HOOK CUresult cuMemAllocAsync_ptsz(CUdeviceptr* out, size_t bytes, CUstream stream) {
  const Entry entry;
  return allocate(entry, out, bytes, streamMeant(stream, kPerThread), nullptr,
                  [&] { return entry.pass(&Functions::cuMemAllocAsync_ptsz, out, bytes, stream); });
}

CISTERN_HOOK CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, size_t bytes, CUmemoryPool pool,
                                              CUstream stream) {
  const Entry entry;
  return allocate(entry, out, bytes, streamMeant(stream, !kPerThread), pool, [&] {
    return entry.pass(&Functions::cuMemAllocFromPoolAsync, out, bytes, pool, stream);
  });
}

CISTERN_HOOK CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* out, size_t bytes,
                                                   CUmemoryPool pool, CUstream stream) {
  const Entry entry;
  return allocate(entry, out, bytes, streamMeant(stream, kPerThread), pool, [&] {
    return entry.pass(&Functions::cuMemAllocFromPoolAsync_ptsz, out, bytes, pool, stream);
  });
}

CISTERN_HOOK CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  const Entry entry;
  return free(entry, pointer, streamMeant(stream, !kPerThread),
              [&] { return entry.pass(&Functions::cuMemFreeAsync, pointer, stream); });
}

CISTERN_HOOK CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream) {
  const Entry entry;
  return free(entry, pointer, streamMeant(stream, kPerThread),
              [&] { return entry.pass(&Functions::cuMemFreeAsync_ptsz, pointer, stream); });
}

CISTERN_HOOK CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  const Entry entry;
  const CUresult result = entry.pass(&Functions::cuDeviceSetMemPool, device, pool);
  if (result == CUDA_SUCCESS && entry.serves()) currentPoolIs(device, pool);
  return result;
}
