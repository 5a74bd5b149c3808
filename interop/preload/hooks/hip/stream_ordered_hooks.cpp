// hipMallocAsync and hipFreeAsync, and the pools under them. There is one spelling of each: stream
// 0 is the legacy one.
#include "interop/preload/hooks/hip/failures.hpp"
#include "interop/preload/hooks/stream_ordered.hpp"

using namespace cistern::preload;
using namespace cistern::preload::hip;

CISTERN_HOOK hipError_t hipMallocAsync(void** out, size_t bytes, hipStream_t stream) {
  const Entry entry;
  return told(serveAsync(entry, out, bytes, streamMeant(stream, false), nullptr, [&] {
    return entry.pass(&Functions::hipMallocAsync, out, bytes, stream);
  }));
}

CISTERN_HOOK hipError_t hipMallocFromPoolAsync(void** out, size_t bytes, hipMemPool_t pool,
                                               hipStream_t stream) {
  const Entry entry;
  return told(serveAsync(entry, out, bytes, streamMeant(stream, false), pool, [&] {
    return entry.pass(&Functions::hipMallocFromPoolAsync, out, bytes, pool, stream);
  }));
}

CISTERN_HOOK hipError_t hipFreeAsync(void* pointer, hipStream_t stream) {
  const Entry entry;
  return told(serveFreeAsync(entry, pointer, streamMeant(stream, false), [&] {
    return entry.pass(&Functions::hipFreeAsync, pointer, stream);
  }));
}

CISTERN_HOOK hipError_t hipDeviceSetMemPool(int device, hipMemPool_t pool) {
  const Entry entry;
  const hipError_t result = entry.pass(&Functions::hipDeviceSetMemPool, device, pool);
  if (result == hipSuccess && entry.serves()) currentPoolChanges(device);
  return result;
}

// For memory of a device it is hipDeviceSetMemPool. The header may not declare it.
extern "C" hipError_t setPoolOfMemory(hipMemLocation*, hipMemAllocationType,
                                      hipMemPool_t) __asm__("hipMemSetMemPool");
CISTERN_HOOK hipError_t setPoolOfMemory(hipMemLocation* location, hipMemAllocationType type,
                                        hipMemPool_t pool) {
  const Entry entry;
  const hipError_t result = entry.pass(&Functions::hipMemSetMemPool, location, type, pool);
  if (result == hipSuccess && entry.serves() && location->type == hipMemLocationTypeDevice)
    currentPoolChanges(location->id);
  return result;
}

CISTERN_HOOK hipError_t hipMemPoolSetAccess(hipMemPool_t pool, const hipMemAccessDesc* access,
                                            size_t count) {
  const Entry entry;
  const hipError_t result = entry.pass(&Functions::hipMemPoolSetAccess, pool, access, count);
  if (result == hipSuccess && entry.serves()) accessChanges(pool, access, count);
  return result;
}

CISTERN_HOOK hipError_t hipMemPoolGetAttribute(hipMemPool_t pool, hipMemPoolAttr attribute,
                                               void* out) {
  const Entry entry;
  return told(servePoolAttribute(entry, pool, attribute, out, [&] {
    return entry.pass(&Functions::hipMemPoolGetAttribute, pool, attribute, out);
  }));
}

CISTERN_HOOK hipError_t hipMemPoolSetAttribute(hipMemPool_t pool, hipMemPoolAttr attribute,
                                               void* value) {
  const Entry entry;
  return told(serveSetPoolAttribute(entry, pool, attribute, [&] {
    return entry.pass(&Functions::hipMemPoolSetAttribute, pool, attribute, value);
  }));
}

CISTERN_HOOK hipError_t hipMemPoolTrimTo(hipMemPool_t pool, size_t keep) {
  const Entry entry;
  return told(servePoolTrim(entry, pool, keep,
                            [&] { return entry.pass(&Functions::hipMemPoolTrimTo, pool, keep); }));
}
