// cudaMalloc and hipMalloc, as the runtimes and programs ask the driver for them.
#include "interop/preload/hooks/hook_memory.hpp"

using namespace cistern::preload::GPU_NAMESPACE;

CISTERN_HOOK Code GPU_NAME(cuMemAlloc_v2, hipMalloc)(DevicePointer* out, size_t bytes) {
  return told(serveMalloc(out, bytes));
}

CISTERN_HOOK Code GPU_NAME(cuMemFree_v2, hipFree)(DevicePointer pointer) {
  return told(serveFree(pointer));
}

CISTERN_HOOK Code GPU_NAME(cuMemGetInfo_v2, hipMemGetInfo)(size_t* free_bytes,
                                                           size_t* total_bytes) {
  const Entry entry;
  const Code result =
      entry.pass(&Functions::GPU_NAME(cuMemGetInfo_v2, hipMemGetInfo), free_bytes, total_bytes);
  return withCached(entry, result, free_bytes);
}

CISTERN_HOOK Code GPU_NAME(cuMemGetAddressRange_v2, hipMemGetAddressRange)(DevicePointer* base,
                                                                           size_t* bytes,
                                                                           DevicePointer pointer) {
  const Entry entry;
  const auto found = blockAround(entry, pointer);
  if (!found)
    return entry.pass(&Functions::GPU_NAME(cuMemGetAddressRange_v2, hipMemGetAddressRange), base,
                      bytes, pointer);
  if (base != nullptr) *base = devicePointer(found->address);
  if (bytes != nullptr) *bytes = found->block.bytes;
  return kSuccess;
}
