// What programs ask about a pointer, and how they share it with other processes.
//
// Cistern's memory is made of pages, of which the driver says less than of its own: not the
// context, and for the range that of a page. What is known better here is answered here. A handle
// for another process (cudaIpcGetMemHandle) cannot be had for it: that is refused, and said. So is
// the handle of a page (cuMemRetainAllocationHandle), as it is for cudaMalloc's memory: the page
// may come to lie behind other memory when this one is freed.
#include "interop/preload/hooks/serve.hpp"

using namespace cistern::preload;
using namespace cistern::preload::cuda;

namespace {

// What Cistern knows better than the driver of its own pointer; false: nothing.
bool answers(CUpointer_attribute attribute, void* out, const Blocks::Around& found) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<CUcontext*>(out) = found.block.context->order().context();
      return true;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(out) = found.address;
      return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<std::size_t*>(out) = found.block.bytes;
      return true;
    default:
      return false;
  }
}

bool isAnswered(CUpointer_attribute attribute) {
  return attribute == CU_POINTER_ATTRIBUTE_CONTEXT ||
         attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
         attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE;
}

}  // namespace

CISTERN_HOOK CUresult cuPointerGetAttribute(void* out, CUpointer_attribute attribute,
                                            CUdeviceptr pointer) {
  const Entry entry;
  if (entry.serves() && out != nullptr && isAnswered(attribute)) {
    const std::optional<Blocks::Around> found = contexts().blocks().around(pointer);
    if (found && answers(attribute, out, *found)) return CUDA_SUCCESS;
  }
  return entry.pass(&Functions::cuPointerGetAttribute, out, attribute, pointer);
}

CISTERN_HOOK CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes,
                                             void** out, CUdeviceptr pointer) {
  const Entry entry;
  const CUresult result =
      entry.pass(&Functions::cuPointerGetAttributes, count, attributes, out, pointer);
  if (result != CUDA_SUCCESS || !entry.serves()) return result;
  std::optional<Blocks::Around> found;
  for (unsigned i = 0; i < count; ++i) {
    if (!isAnswered(attributes[i]) || out[i] == nullptr) continue;
    if (!found) found = contexts().blocks().around(pointer);
    if (!found) return result;
    (void)answers(attributes[i], out[i], *found);
  }
  return result;
}

CISTERN_HOOK CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle,
                                                  void* address) {
  const Entry entry;
  if (!entry.serves() || !contexts().blocks().around(reinterpret_cast<CUdeviceptr>(address)))
    return entry.pass(&Functions::cuMemRetainAllocationHandle, handle, address);
  passed(Passed::kIpcRefused);
  return CUDA_ERROR_INVALID_VALUE;
}

CISTERN_HOOK CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer) {
  const Entry entry;
  if (!entry.serves() || !contexts().blocks().around(pointer))
    return entry.pass(&Functions::cuIpcGetMemHandle, handle, pointer);
  return refuseToShare("cuda");
}
