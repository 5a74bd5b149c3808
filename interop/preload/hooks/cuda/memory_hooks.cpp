// cudaMalloc and its like, as the runtimes and programs ask the driver for them.
#include "interop/preload/hooks/hook_memory.hpp"

namespace cistern::preload::cuda {

Code passMalloc(const Entry& entry, DevicePointer* out, std::size_t bytes) {
  return entry.pass(&Functions::cuMemAlloc_v2, out, bytes);
}
Code passFree(const Entry& entry, DevicePointer pointer) {
  return entry.pass(&Functions::cuMemFree_v2, pointer);
}

}  // namespace cistern::preload::cuda

using namespace cistern::preload;
using namespace cistern::preload::cuda;

CISTERN_HOOK CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t bytes) {
  return serveMalloc(out, bytes);
}

CISTERN_HOOK CUresult cuMemFree_v2(CUdeviceptr pointer) { return serveFree(pointer); }

CISTERN_HOOK CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  const Entry entry;
  return withCached(entry, entry.pass(&Functions::cuMemGetInfo_v2, free_bytes, total_bytes),
                    free_bytes);
}

CISTERN_HOOK CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes,
                                              CUdeviceptr pointer) {
  const Entry entry;
  const auto found = blockAround(entry, pointer);
  if (!found) return entry.pass(&Functions::cuMemGetAddressRange_v2, base, bytes, pointer);
  if (base != nullptr) *base = found->address;
  if (bytes != nullptr) *bytes = found->block.bytes;
  return CUDA_SUCCESS;
}
