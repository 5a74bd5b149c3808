// Memory that is the runtime's still, counted: it has no plain address, or properties that
// Cistern's has not. When the runtime has none left, Cistern first gives back its cached memory.
#include "interop/preload/hooks/hook_memory.hpp"

using namespace cistern::preload;
using namespace cistern::preload::hip;

// Without a flag it is hipMalloc; with one it is memory of another kind.
CISTERN_HOOK hipError_t hipExtMallocWithFlags(void** out, size_t bytes, unsigned flags) {
  if (flags == hipDeviceMallocDefault) return told(serveMalloc(out, bytes));
  return passCounted(Passed::kProperties, &Functions::hipExtMallocWithFlags, out, bytes, flags);
}

CISTERN_HOOK hipError_t hipMallocPitch(void** out, size_t* pitch, size_t width, size_t height) {
  return passCounted(Passed::kPitched, &Functions::hipMallocPitch, out, pitch, width, height);
}

CISTERN_HOOK hipError_t hipMemAllocPitch(hipDeviceptr_t* out, size_t* pitch, size_t width,
                                         size_t height, unsigned element) {
  return passCounted(Passed::kPitched, &Functions::hipMemAllocPitch, out, pitch, width, height,
                     element);
}

CISTERN_HOOK hipError_t hipMalloc3D(hipPitchedPtr* out, hipExtent extent) {
  return passCounted(Passed::kPitched, &Functions::hipMalloc3D, out, extent);
}

CISTERN_HOOK hipError_t hipMallocManaged(void** out, size_t bytes, unsigned flags) {
  return passCounted(Passed::kManaged, &Functions::hipMallocManaged, out, bytes, flags);
}

CISTERN_HOOK hipError_t hipMallocArray(hipArray_t* out, const hipChannelFormatDesc* wanted,
                                       size_t width, size_t height, unsigned flags) {
  return passCounted(Passed::kArray, &Functions::hipMallocArray, out, wanted, width, height, flags);
}

CISTERN_HOOK hipError_t hipMalloc3DArray(hipArray_t* out, const hipChannelFormatDesc* wanted,
                                         hipExtent extent, unsigned flags) {
  return passCounted(Passed::kArray, &Functions::hipMalloc3DArray, out, wanted, extent, flags);
}

CISTERN_HOOK hipError_t hipArrayCreate(hipArray_t* out, const HIP_ARRAY_DESCRIPTOR* wanted) {
  return passCounted(Passed::kArray, &Functions::hipArrayCreate, out, wanted);
}

CISTERN_HOOK hipError_t hipArray3DCreate(hipArray_t* out, const HIP_ARRAY3D_DESCRIPTOR* wanted) {
  return passCounted(Passed::kArray, &Functions::hipArray3DCreate, out, wanted);
}

CISTERN_HOOK hipError_t hipMallocMipmappedArray(hipMipmappedArray_t* out,
                                                const hipChannelFormatDesc* wanted,
                                                hipExtent extent, unsigned levels, unsigned flags) {
  return passCounted(Passed::kArray, &Functions::hipMallocMipmappedArray, out, wanted, extent,
                     levels, flags);
}

CISTERN_HOOK hipError_t hipMipmappedArrayCreate(hipMipmappedArray_t* out,
                                                HIP_ARRAY3D_DESCRIPTOR* wanted, unsigned levels) {
  return passCounted(Passed::kArray, &Functions::hipMipmappedArrayCreate, out, wanted, levels);
}

CISTERN_HOOK hipError_t hipMemCreate(hipMemGenericAllocationHandle_t* out, size_t bytes,
                                     const hipMemAllocationProp* wanted, unsigned long long flags) {
  return passCounted(Passed::kPages, &Functions::hipMemCreate, out, bytes, wanted, flags);
}
