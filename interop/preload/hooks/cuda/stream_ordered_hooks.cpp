// cudaMallocAsync and cudaFreeAsync, and the pools under them. Each of the two has two spellings,
// which differ in what stream 0 is.
#include "interop/preload/hooks/stream_ordered.hpp"

using namespace cistern::preload;
using namespace cistern::preload::cuda;

CISTERN_HOOK CUresult cuMemAllocAsync(CUdeviceptr* out, size_t bytes, CUstream stream) {
  const Entry entry;
  return serveAsync(entry, out, bytes, streamMeant(stream, false), nullptr,
                    [&] { return entry.pass(&Functions::cuMemAllocAsync, out, bytes, stream); });
}

CISTERN_HOOK CUresult cuMemAllocAsync_ptsz(CUdeviceptr* out, size_t bytes, CUstream stream) {
  const Entry entry;
  return serveAsync(entry, out, bytes, streamMeant(stream, true), nullptr, [&] {
    return entry.pass(&Functions::cuMemAllocAsync_ptsz, out, bytes, stream);
  });
}

CISTERN_HOOK CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, size_t bytes, CUmemoryPool pool,
                                              CUstream stream) {
  const Entry entry;
  return serveAsync(entry, out, bytes, streamMeant(stream, false), pool, [&] {
    return entry.pass(&Functions::cuMemAllocFromPoolAsync, out, bytes, pool, stream);
  });
}

CISTERN_HOOK CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* out, size_t bytes,
                                                   CUmemoryPool pool, CUstream stream) {
  const Entry entry;
  return serveAsync(entry, out, bytes, streamMeant(stream, true), pool, [&] {
    return entry.pass(&Functions::cuMemAllocFromPoolAsync_ptsz, out, bytes, pool, stream);
  });
}

CISTERN_HOOK CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  const Entry entry;
  return serveFreeAsync(entry, pointer, streamMeant(stream, false),
                        [&] { return entry.pass(&Functions::cuMemFreeAsync, pointer, stream); });
}

CISTERN_HOOK CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream) {
  const Entry entry;
  return serveFreeAsync(entry, pointer, streamMeant(stream, true), [&] {
    return entry.pass(&Functions::cuMemFreeAsync_ptsz, pointer, stream);
  });
}

CISTERN_HOOK CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  const Entry entry;
  const CUresult result = entry.pass(&Functions::cuDeviceSetMemPool, device, pool);
  if (result == CUDA_SUCCESS && entry.serves()) currentPoolChanges(device);
  return result;
}

// For memory of a device it is cuDeviceSetMemPool. No other memory is stream-ordered by default.
CISTERN_HOOK CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type,
                                      CUmemoryPool pool) {
  const Entry entry;
  const CUresult result = entry.pass(&Functions::cuMemSetMemPool, location, type, pool);
  if (result == CUDA_SUCCESS && entry.serves() && location->type == CU_MEM_LOCATION_TYPE_DEVICE)
    currentPoolChanges(location->id);
  return result;
}

CISTERN_HOOK CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* access,
                                         size_t count) {
  const Entry entry;
  const CUresult result = entry.pass(&Functions::cuMemPoolSetAccess, pool, access, count);
  if (result == CUDA_SUCCESS && entry.serves()) accessChanges(pool, access, count);
  return result;
}

CISTERN_HOOK CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                            void* out) {
  const Entry entry;
  return servePoolAttribute(entry, pool, attribute, out, [&] {
    return entry.pass(&Functions::cuMemPoolGetAttribute, pool, attribute, out);
  });
}

CISTERN_HOOK CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                            void* value) {
  const Entry entry;
  return serveSetPoolAttribute(entry, pool, attribute, [&] {
    return entry.pass(&Functions::cuMemPoolSetAttribute, pool, attribute, value);
  });
}

CISTERN_HOOK CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  const Entry entry;
  return servePoolTrim(entry, pool, keep,
                       [&] { return entry.pass(&Functions::cuMemPoolTrimTo, pool, keep); });
}
