// cudaMallocAsync, hipMallocAsync and their frees, and the pools under them. HIP has one spelling
// of each, in which stream 0 is the legacy one. CUDA's other spellings are in
// cuda/per_thread_hooks.cpp.
#include "interop/preload/hooks/stream_ordered.hpp"

using namespace cistern::preload::GPU_NAMESPACE;

CISTERN_HOOK Code GPU_NAME(cuMemAllocAsync, hipMallocAsync)(DevicePointer* out, size_t bytes,
                                                            StreamHandle stream) {
  return told(serveAsync(out, bytes, streamMeant(stream, false), nullptr,
                         &Functions::GPU_NAME(cuMemAllocAsync, hipMallocAsync), out, bytes,
                         stream));
}

CISTERN_HOOK Code GPU_NAME(cuMemAllocFromPoolAsync,
                           hipMallocFromPoolAsync)(DevicePointer* out, size_t bytes,
                                                   PoolHandle pool, StreamHandle stream) {
  return told(serveAsync(out, bytes, streamMeant(stream, false), pool,
                         &Functions::GPU_NAME(cuMemAllocFromPoolAsync, hipMallocFromPoolAsync), out,
                         bytes, pool, stream));
}

CISTERN_HOOK Code GPU_NAME(cuMemFreeAsync, hipFreeAsync)(DevicePointer pointer,
                                                         StreamHandle stream) {
  return told(
      serveFreeAsync(pointer, stream, false, &Functions::GPU_NAME(cuMemFreeAsync, hipFreeAsync)));
}

// ---- Pools --------------------------------------------------------------------------------------

CISTERN_HOOK Code GPU_NAME(cuDeviceSetMemPool, hipDeviceSetMemPool)(int device, PoolHandle pool) {
  const Entry entry;
  const Code result =
      entry.pass(&Functions::GPU_NAME(cuDeviceSetMemPool, hipDeviceSetMemPool), device, pool);
  if (result == kSuccess && entry.serves()) currentPoolChanges(device);
  return result;
}

// For memory of a device it is the same. HIP's header may not declare it.
using MemoryPlace = GPU_NAME(CUmemLocation, hipMemLocation);
using MemoryType = GPU_NAME(CUmemAllocationType, hipMemAllocationType);
extern "C" Code setPoolOfMemory(MemoryPlace*, MemoryType,
                                PoolHandle) __asm__(GPU_NAME("cuMemSetMemPool",
                                                             "hipMemSetMemPool"));
CISTERN_HOOK Code setPoolOfMemory(MemoryPlace* place, MemoryType type, PoolHandle pool) {
  const Entry entry;
  const Code result =
      entry.pass(&Functions::GPU_NAME(cuMemSetMemPool, hipMemSetMemPool), place, type, pool);
  if (result == kSuccess && entry.serves() && place->type == kOfDevice)
    currentPoolChanges(place->id);
  return result;
}

CISTERN_HOOK Code GPU_NAME(cuMemPoolSetAccess, hipMemPoolSetAccess)(PoolHandle pool,
                                                                    const PoolAccess* access,
                                                                    size_t count) {
  const Entry entry;
  const Code result = entry.pass(&Functions::GPU_NAME(cuMemPoolSetAccess, hipMemPoolSetAccess),
                                 pool, access, count);
  if (result == kSuccess && entry.serves()) accessChanges(pool, access, count);
  return result;
}

CISTERN_HOOK Code GPU_NAME(cuMemPoolGetAttribute, hipMemPoolGetAttribute)(PoolHandle pool,
                                                                          PoolAttribute attribute,
                                                                          void* out) {
  return told(servePoolAttribute(
      &Functions::GPU_NAME(cuMemPoolGetAttribute, hipMemPoolGetAttribute), pool, attribute, out));
}

CISTERN_HOOK Code GPU_NAME(cuMemPoolSetAttribute, hipMemPoolSetAttribute)(PoolHandle pool,
                                                                          PoolAttribute attribute,
                                                                          void* value) {
  return told(serveSetPoolAttribute(
      &Functions::GPU_NAME(cuMemPoolSetAttribute, hipMemPoolSetAttribute), pool, attribute, value));
}

CISTERN_HOOK Code GPU_NAME(cuMemPoolTrimTo, hipMemPoolTrimTo)(PoolHandle pool, size_t keep) {
  return told(servePoolTrim(&Functions::GPU_NAME(cuMemPoolTrimTo, hipMemPoolTrimTo), pool, keep));
}
