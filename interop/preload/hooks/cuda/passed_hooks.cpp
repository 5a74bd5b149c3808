// Memory that is the driver's still, counted: it has no plain address, or properties that Cistern's
// has not. When the driver has none left, Cistern first gives back its cached memory.
#include "interop/preload/hooks/hook_entry.hpp"

using namespace cistern::preload;
using namespace cistern::preload::cuda;

CISTERN_HOOK CUresult cuMemAllocPitch_v2(CUdeviceptr* out, size_t* pitch, size_t width,
                                         size_t height, unsigned element) {
  return passCounted(Passed::kPitched, &Functions::cuMemAllocPitch_v2, out, pitch, width, height,
                     element);
}

CISTERN_HOOK CUresult cuMemAllocManaged(CUdeviceptr* out, size_t bytes, unsigned flags) {
  return passCounted(Passed::kManaged, &Functions::cuMemAllocManaged, out, bytes, flags);
}

CISTERN_HOOK CUresult cuArrayCreate_v2(CUarray* out, const CUDA_ARRAY_DESCRIPTOR* wanted) {
  return passCounted(Passed::kArray, &Functions::cuArrayCreate_v2, out, wanted);
}

CISTERN_HOOK CUresult cuArray3DCreate_v2(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* wanted) {
  return passCounted(Passed::kArray, &Functions::cuArray3DCreate_v2, out, wanted);
}

CISTERN_HOOK CUresult cuMipmappedArrayCreate(CUmipmappedArray* out,
                                             const CUDA_ARRAY3D_DESCRIPTOR* wanted,
                                             unsigned levels) {
  return passCounted(Passed::kArray, &Functions::cuMipmappedArrayCreate, out, wanted, levels);
}

CISTERN_HOOK CUresult cuMemCreate(CUmemGenericAllocationHandle* out, size_t bytes,
                                  const CUmemAllocationProp* wanted, unsigned long long flags) {
  const Entry entry;
  if (entry.serves()) passed(Passed::kPages);
  std::optional<int> device;
  if (wanted != nullptr && wanted->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
    device = wanted->location.id;
  return withRoom(
      entry, [&] { return entry.pass(&Functions::cuMemCreate, out, bytes, wanted, flags); },
      device);
}
