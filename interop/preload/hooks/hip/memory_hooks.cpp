// hipMalloc and its like.
#include "interop/preload/hooks/hip/failures.hpp"
#include "interop/preload/hooks/hook_memory.hpp"

namespace cistern::preload::hip {

Code passMalloc(const Entry& entry, DevicePointer* out, std::size_t bytes) {
  return entry.pass(&Functions::hipMalloc, out, bytes);
}
Code passFree(const Entry& entry, DevicePointer pointer) {
  return entry.pass(&Functions::hipFree, pointer);
}

}  // namespace cistern::preload::hip

using namespace cistern::preload;
using namespace cistern::preload::hip;

CISTERN_HOOK hipError_t hipMalloc(void** out, size_t bytes) {
  return told(serveMalloc(out, bytes));
}

CISTERN_HOOK hipError_t hipFree(void* pointer) { return told(serveFree(pointer)); }

// Without a flag it is hipMalloc; with one it is memory of another kind.
CISTERN_HOOK hipError_t hipExtMallocWithFlags(void** out, size_t bytes, unsigned flags) {
  if (flags == hipDeviceMallocDefault) return told(serveMalloc(out, bytes));
  return passCounted(Passed::kProperties, &Functions::hipExtMallocWithFlags, out, bytes, flags);
}

CISTERN_HOOK hipError_t hipMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  const Entry entry;
  return withCached(entry, entry.pass(&Functions::hipMemGetInfo, free_bytes, total_bytes),
                    free_bytes);
}

CISTERN_HOOK hipError_t hipMemGetAddressRange(hipDeviceptr_t* base, size_t* bytes,
                                              hipDeviceptr_t pointer) {
  const Entry entry;
  const auto found = blockAround(entry, pointer);
  if (!found) return entry.pass(&Functions::hipMemGetAddressRange, base, bytes, pointer);
  if (base != nullptr) *base = devicePointer(found->address);
  if (bytes != nullptr) *bytes = found->block.bytes;
  return hipSuccess;
}

CISTERN_HOOK hipError_t hipMemPtrGetInfo(void* pointer, size_t* bytes) {
  const Entry entry;
  const auto found = blockAround(entry, pointer);
  if (!found || bytes == nullptr) return entry.pass(&Functions::hipMemPtrGetInfo, pointer, bytes);
  *bytes = found->block.bytes;
  return hipSuccess;
}
