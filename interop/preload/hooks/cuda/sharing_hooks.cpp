// Questions of programs about a pointer, and sharing of pointers with other processes.
//
// Cistern's memory is made of pages. The driver says less of pages than of its own memory. It does
// not say the context, and gives the range of a page. These hooks answer what they know better.
// They refuse the handle of a page (cuMemRetainAllocationHandle), as the driver does for
// cudaMalloc's memory. The page may come to lie behind other memory when this one is freed.
//
// A handle for another process (cudaIpcGetMemHandle) is one of ours, which the hook there opens
// (served/served_sharing.hpp). One that the driver has made is the driver's.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <new>
#include <string_view>

#include "interop/preload/hooks/hook_memory.hpp"
#include "interop/preload/served/host_overflow.hpp"

using namespace cistern::preload;
using namespace cistern::preload::cuda;

namespace {

// The attributes that Cistern knows better than the driver, for a pointer of its own or of another
// process's.
bool isAnswered(CUpointer_attribute attribute) {
  return attribute == CU_POINTER_ATTRIBUTE_CONTEXT ||
         attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
         attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE ||
         attribute == CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE;
}

// Those of a block in the host's memory, too. The driver tells of the page there, which the host
// cannot reach. To the program it is memory of the device, as every cudaMalloc's.
bool isAnsweredOnHost(CUpointer_attribute attribute) {
  return attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE ||
         attribute == CU_POINTER_ATTRIBUTE_DEVICE_POINTER ||
         attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER ||
         attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
}

bool mayBeAnswered(CUpointer_attribute attribute) {
  return isAnswered(attribute) || (overflows() && isAnsweredOnHost(attribute));
}

// Whether Cistern answers for the block, rather than the driver.
bool answersFor(CUpointer_attribute attribute, const Blocks::Around& found) {
  return isAnswered(attribute) || (isAnsweredOnHost(attribute) && liesOnHost(found));
}

bool isOwn(const Blocks::Around& found) {
  return contexts().blocks().find(found.address).has_value();
}

// The driver has answered for the memory around the block. It says yes for memory of a cudaMalloc,
// but the handle would be of all of it. It says no for a page, which can still be shared, unless it
// is the host's.
void answerIpcCapable(char& driver_says, const Blocks::Around& found) {
  if (!isOwn(found)) return;
  const bool in_page = driver_says == 0 && !liesOnHost(found);
  driver_says = in_page && found.block.context->serving()->device.interprocessSupported() ? 1 : 0;
}

void answer(CUpointer_attribute attribute, void* out, const Blocks::Around& found,
            CUdeviceptr pointer) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(out) = CU_MEMORYTYPE_DEVICE;
      return;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *static_cast<CUdeviceptr*>(out) = pointer;
      return;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      *static_cast<void**>(out) = nullptr;
      return;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(out) = found.block.context->serving()->device.ordinal();
      return;
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<CUcontext*>(out) = found.block.context->order().context();
      return;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(out) = found.address;
      return;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<std::size_t*>(out) = found.block.bytes;
      return;
    default:
      return answerIpcCapable(*static_cast<char*>(out), found);
  }
}

}  // namespace

CISTERN_HOOK CUresult cuPointerGetAttribute(void* out, CUpointer_attribute attribute,
                                            CUdeviceptr pointer) {
  const Entry entry;
  std::optional<Blocks::Around> found;
  if (out != nullptr && mayBeAnswered(attribute)) found = blockAround(entry, pointer);
  if (found && !answersFor(attribute, *found)) found.reset();
  if (!found || attribute == CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE) {
    const CUresult result = entry.pass(&Functions::cuPointerGetAttribute, out, attribute, pointer);
    if (!found || result != CUDA_SUCCESS) return result;
  }
  // The driver's answer for memory of the device.
  if (attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER) return CUDA_ERROR_INVALID_VALUE;
  answer(attribute, out, *found, pointer);
  return CUDA_SUCCESS;
}

CISTERN_HOOK CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes,
                                             void** out, CUdeviceptr pointer) {
  const Entry entry;
  const CUresult result =
      entry.pass(&Functions::cuPointerGetAttributes, count, attributes, out, pointer);
  if (result != CUDA_SUCCESS) return result;
  std::optional<Blocks::Around> found;
  for (unsigned i = 0; i < count; ++i) {
    if (!mayBeAnswered(attributes[i]) || out[i] == nullptr) continue;
    if (!found) found = blockAround(entry, pointer);
    if (!found) return result;
    if (answersFor(attributes[i], *found)) answer(attributes[i], out[i], *found, pointer);
  }
  return result;
}

CISTERN_HOOK CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle,
                                                  void* address) {
  const Entry entry;
  if (!blockAround(entry, reinterpret_cast<CUdeviceptr>(address)))
    return entry.pass(&Functions::cuMemRetainAllocationHandle, handle, address);
  passed(Passed::kIpcRefused);
  return CUDA_ERROR_INVALID_VALUE;
}

// ---- Handles for other processes ----------------------------------------------------------------

namespace {

CUresult share(CUipcMemHandle& handle, const Blocks::Around& block) {
  try {
    const std::optional<IpcHandle> made = contexts().sharing().share(block);
    if (!made) return refuseToShare("cuda", "it is not in pages that the driver exports");
    static_assert(sizeof *made == sizeof handle);
    std::memcpy(&handle, made->data(), sizeof handle);
    return CUDA_SUCCESS;
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    return refuseToShare("cuda", error.what());
  }
}

void sayOnce(std::string_view what) noexcept {
  static std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  constexpr std::string_view kWho = "cistern: ";
  if (what.starts_with(kWho)) what.remove_prefix(kWho.size());
  std::fprintf(stderr, "cistern: cudaIpcOpenMemHandle: %.*s\n", int(what.size()), what.data());
}

CUresult open(CUdeviceptr& out, const cistern::sharing::BlockName& name) {
  if (contexts().sharing().isOwn(name)) return CUDA_ERROR_INVALID_CONTEXT;
  Context* const context = contexts().currentServed();
  if (context == nullptr) {
    passed(Passed::kRefused);
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  try {
    out = contexts().sharing().open(*context, name);
    return CUDA_SUCCESS;
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (const cistern::DeviceFailure& failure) {
    sayOnce(failure.what());
    return CUresult(failure.error().code);
  } catch (const std::exception& error) {
    sayOnce(error.what());
    return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult openOr(CUresult (*FunctionTable::*function)(CUdeviceptr*, CUipcMemHandle, unsigned),
                CUdeviceptr* out, const CUipcMemHandle& handle, unsigned flags) {
  const Entry entry;
  IpcHandle ours;
  std::memcpy(ours.data(), &handle, sizeof handle);
  const auto name = nameOf(ours);
  if (!entry.opens() || out == nullptr || !name) return entry.pass(function, out, handle, flags);
  return open(*out, *name);
}

}  // namespace

// A block of another process cannot be passed on to a third one.
CISTERN_HOOK CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer) {
  const Entry entry;
  const auto found = blockAround(entry, pointer);
  if (!found || handle == nullptr)
    return entry.pass(&Functions::cuIpcGetMemHandle, handle, pointer);
  return isOwn(*found) ? share(*handle, *found) : CUDA_ERROR_INVALID_VALUE;
}

CISTERN_HOOK CUresult cuIpcOpenMemHandle(CUdeviceptr* out, CUipcMemHandle handle, unsigned flags) {
  return openOr(&Functions::cuIpcOpenMemHandle, out, handle, flags);
}

CISTERN_HOOK CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* out, CUipcMemHandle handle,
                                            unsigned flags) {
  return openOr(&Functions::cuIpcOpenMemHandle_v2, out, handle, flags);
}

CISTERN_HOOK CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
  const Entry entry;
  if (entry.opens() && contexts().sharing().close(pointer)) return CUDA_SUCCESS;
  return entry.pass(&Functions::cuIpcCloseMemHandle, pointer);
}
