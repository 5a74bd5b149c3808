// Questions of programs about a pointer, and sharing of pointers with other processes.
//
// Cistern's memory lies in segments from hipMalloc. The runtime knows everything of them except
// where a block begins and ends. A handle for another process (hipIpcGetMemHandle) would be that of
// the whole segment. It is refused, with a message.
#include "interop/preload/hooks/hook_memory.hpp"

using namespace cistern::preload;
using namespace cistern::preload::hip;

namespace {

bool isAnswered(hipPointer_attribute attribute) {
  return attribute == HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
         attribute == HIP_POINTER_ATTRIBUTE_RANGE_SIZE;
}

void answer(hipPointer_attribute attribute, void* out, const Blocks::Around& found) {
  if (attribute == HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR) {
    *static_cast<void**>(out) = devicePointer(found.address);
  } else {
    *static_cast<std::size_t*>(out) = found.block.bytes;
  }
}

}  // namespace

CISTERN_HOOK hipError_t hipPointerGetAttribute(void* out, hipPointer_attribute attribute,
                                               hipDeviceptr_t pointer) {
  const Entry entry;
  if (out != nullptr && isAnswered(attribute)) {
    if (const auto found = blockAround(entry, pointer)) {
      answer(attribute, out, *found);
      return hipSuccess;
    }
  }
  return entry.pass(&Functions::hipPointerGetAttribute, out, attribute, pointer);
}

CISTERN_HOOK hipError_t hipDrvPointerGetAttributes(unsigned count, hipPointer_attribute* attributes,
                                                   void** out, hipDeviceptr_t pointer) {
  const Entry entry;
  const hipError_t result =
      entry.pass(&Functions::hipDrvPointerGetAttributes, count, attributes, out, pointer);
  if (result != hipSuccess) return result;
  const auto found = blockAround(entry, pointer);
  for (unsigned i = 0; found && i < count; ++i) {
    if (isAnswered(attributes[i]) && out[i] != nullptr) answer(attributes[i], out[i], *found);
  }
  return result;
}

CISTERN_HOOK hipError_t hipMemRetainAllocationHandle(hipMemGenericAllocationHandle_t* handle,
                                                     void* address) {
  const Entry entry;
  if (!blockAround(entry, address))
    return entry.pass(&Functions::hipMemRetainAllocationHandle, handle, address);
  passed(Passed::kIpcRefused);
  return told(hipErrorInvalidValue);
}

CISTERN_HOOK hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t* handle, void* pointer) {
  const Entry entry;
  if (!blockAround(entry, pointer))
    return entry.pass(&Functions::hipIpcGetMemHandle, handle, pointer);
  return told(refuseToShare("hip", "it lies in segments"));
}

CISTERN_HOOK hipError_t hipMemPtrGetInfo(void* pointer, size_t* bytes) {
  const Entry entry;
  const auto found = blockAround(entry, pointer);
  if (!found || bytes == nullptr) return entry.pass(&Functions::hipMemPtrGetInfo, pointer, bytes);
  *bytes = found->block.bytes;
  return hipSuccess;
}
