// Memory of the fake HIP runtime.
#include "tests/preload/fake_device/fake_pools.hpp"
#include "tests/preload/fake_hip/state.hpp"

using namespace fake;

namespace {

hipError_t allocated(void** out, size_t bytes) {
  if (const int forbidden = captureSays(); forbidden != 0) return answer(forbidden);
  *out = nullptr;
  if (bytes == 0) return hipSuccess;
  std::uint64_t address = 0;
  const int code = allocate(current(), &address, bytes);
  if (code == 0) *out = reinterpret_cast<void*>(address);
  return answer(code);
}

const std::pair<const std::uint64_t, std::uint64_t>* anywhere(const void* pointer, int* ordinal) {
  for (*ordinal = 0; *ordinal < kDevices; ++*ordinal) {
    if (const auto* found = around(device(*ordinal), reinterpret_cast<std::uint64_t>(pointer)))
      return found;
  }
  return nullptr;
}

// As HIP does: what a pointer lies in goes as a whole, wherever in it the pointer is.
hipError_t freed(void* pointer) {
  if (const int forbidden = captureSays(); forbidden != 0) return answer(forbidden);
  if (pointer == nullptr) return hipSuccess;
  int ordinal = 0;
  const auto* const found = anywhere(pointer, &ordinal);
  if (found != nullptr) poolGives(found->first);
  return answer(found == nullptr ? hipErrorInvalidValue : release(found->first));
}

}  // namespace

FAKE hipError_t hipMalloc(void** out, size_t bytes) {
  count("hipMalloc");
  return allocated(out, bytes);
}
FAKE hipError_t hipExtMallocWithFlags(void** out, size_t bytes, unsigned) {
  count("hipExtMallocWithFlags");
  return allocated(out, bytes);
}
FAKE hipError_t hipFree(void* pointer) {
  count("hipFree");
  return freed(pointer);
}
FAKE hipError_t hipMemGetInfo(size_t* free_bytes, size_t* total) {
  count("hipMemGetInfo");
  const cistern::Result<cistern::MemoryInfo> info = current().sim->memoryInfo();
  if (!info) return answer(codeOf(info));
  *free_bytes = info.value().free_bytes;
  return *total = info.value().total_bytes, hipSuccess;
}
FAKE hipError_t hipMallocManaged(void** out, size_t bytes, unsigned) {
  count("hipMallocManaged");
  return allocated(out, bytes);
}
FAKE hipError_t hipMallocPitch(void** out, size_t* pitch, size_t width, size_t height) {
  count("hipMallocPitch");
  return *pitch = (width + 511) / 512 * 512, allocated(out, *pitch * height);
}
FAKE hipError_t hipMallocArray(hipArray_t* out, const hipChannelFormatDesc*, size_t width, size_t,
                               unsigned) {
  count("hipMallocArray");
  return allocated(reinterpret_cast<void**>(out), width);
}

// ---- What is asked about pointers ---------------------------------------------------------------

FAKE hipError_t hipMemGetAddressRange(hipDeviceptr_t* base, size_t* bytes, hipDeviceptr_t pointer) {
  count("hipMemGetAddressRange");
  int ordinal = 0;
  const auto* const found = anywhere(pointer, &ordinal);
  if (found == nullptr) return answer(hipErrorNotFound);
  *base = reinterpret_cast<hipDeviceptr_t>(found->first);
  return *bytes = found->second, hipSuccess;
}
FAKE hipError_t hipMemPtrGetInfo(void* pointer, size_t* bytes) {
  count("hipMemPtrGetInfo");
  int ordinal = 0;
  const auto* const found = anywhere(pointer, &ordinal);
  if (found == nullptr) return answer(hipErrorInvalidValue);
  return *bytes = found->second, hipSuccess;
}
FAKE hipError_t hipPointerGetAttributes(hipPointerAttribute_t* out, const void* pointer) {
  count("hipPointerGetAttributes");
  int ordinal = 0;
  if (anywhere(pointer, &ordinal) == nullptr) return answer(hipErrorInvalidValue);
  *out = {};
  out->device = ordinal;
  return out->devicePointer = const_cast<void*>(pointer), hipSuccess;
}
FAKE hipError_t hipPointerGetAttribute(void* out, hipPointer_attribute what,
                                       hipDeviceptr_t pointer) {
  count("hipPointerGetAttribute");
  int ordinal = 0;
  const auto* const found = anywhere(pointer, &ordinal);
  if (found == nullptr) return answer(hipErrorInvalidValue);
  switch (what) {
    case HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<void**>(out) = reinterpret_cast<void*>(found->first);
      break;
    case HIP_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<size_t*>(out) = found->second;
      break;
    case HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(out) = ordinal;
      break;
    default:
      return answer(hipErrorInvalidValue);
  }
  return hipSuccess;
}
FAKE hipError_t hipDrvPointerGetAttributes(unsigned n, hipPointer_attribute* which, void** out,
                                           hipDeviceptr_t pointer) {
  for (unsigned i = 0; i < n; ++i) {
    if (const auto failed = hipPointerGetAttribute(out[i], which[i], pointer)) return failed;
  }
  return hipSuccess;
}
FAKE hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t*, void*) {
  count("hipIpcGetMemHandle");
  return hipSuccess;
}

// ---- Stream-ordered: served by plain memory, as the tests count who asked -----------------------

namespace {

hipError_t found(hipMemPool_t* out, Pool pool) {
  *out = static_cast<hipMemPool_t>(pool);
  return answer(pool == nullptr ? hipErrorInvalidDevice : hipSuccess);
}
hipError_t allocatedFrom(Pool pool, void** out, size_t bytes) {
  const hipError_t result = allocated(out, bytes);
  if (result == hipSuccess && *out != nullptr)
    poolTakes(pool, reinterpret_cast<std::uint64_t>(*out), bytes);
  return result;
}
hipError_t valid(bool done) { return answer(done ? hipSuccess : hipErrorInvalidValue); }

}  // namespace

FAKE hipError_t hipDeviceGetDefaultMemPool(hipMemPool_t* pool, int device) {
  return found(pool, defaultPool(device));
}
FAKE hipError_t hipDeviceGetMemPool(hipMemPool_t* pool, int device) {
  return found(pool, currentPool(device));
}
FAKE hipError_t hipDeviceSetMemPool(int device, hipMemPool_t pool) {
  return valid(setCurrentPool(device, pool));
}
// The header may not declare it.
extern "C" hipError_t setPoolOfMemory(hipMemLocation*, hipMemAllocationType,
                                      hipMemPool_t) __asm__("hipMemSetMemPool");
FAKE hipError_t setPoolOfMemory(hipMemLocation* location, hipMemAllocationType, hipMemPool_t pool) {
  return hipDeviceSetMemPool(location->id, pool);
}
FAKE hipError_t hipMemPoolCreate(hipMemPool_t* out, const hipMemPoolProps* wanted) {
  return found(out, makePool(wanted->location.id));
}
FAKE hipError_t hipMemPoolDestroy(hipMemPool_t pool) { return valid(destroyPool(pool)); }
FAKE hipError_t hipMemPoolSetAccess(hipMemPool_t, const hipMemAccessDesc*, size_t) {
  return hipSuccess;
}
FAKE hipError_t hipMemPoolGetAttribute(hipMemPool_t pool, hipMemPoolAttr attribute, void* out) {
  return valid(getAttribute(pool, int(attribute), out));
}
FAKE hipError_t hipMemPoolSetAttribute(hipMemPool_t pool, hipMemPoolAttr attribute, void* value) {
  return valid(setAttribute(pool, int(attribute), value));
}
FAKE hipError_t hipMemPoolTrimTo(hipMemPool_t pool, size_t keep) {
  return valid(trimPool(pool, keep));
}
FAKE hipError_t hipMallocAsync(void** out, size_t bytes, hipStream_t) {
  count("hipMallocAsync");
  int device = 0;
  (void)hipGetDevice(&device);
  return allocatedFrom(currentPool(device), out, bytes);
}
FAKE hipError_t hipMallocFromPoolAsync(void** out, size_t bytes, hipMemPool_t pool, hipStream_t) {
  count("hipMallocFromPoolAsync");
  return allocatedFrom(pool, out, bytes);
}
FAKE hipError_t hipFreeAsync(void* pointer, hipStream_t) {
  count("hipFreeAsync");
  return freed(pointer);
}
