// Devices, contexts, and the look-up by cuGetProcAddress.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>

#include "tests/preload/fake_driver/state.hpp"

namespace fake {
namespace {

// Not destroyed: a program may call from its last destructors on.
thread_local auto& stack = *new std::vector<CUcontext>;
CUctx_st primary[kDevices] = {{0, true}, {1, true}};
int retained[kDevices] = {};

}  // namespace

CUcontext currentContext() { return stack.empty() ? nullptr : stack.back(); }
Device& current() { return device(currentContext()->ordinal); }

}  // namespace fake

using namespace fake;

FAKE CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
FAKE CUresult cuDriverGetVersion(int* version) { return *version = 13000, CUDA_SUCCESS; }
FAKE CUresult cuDeviceGetCount(int* n) { return *n = kDevices, CUDA_SUCCESS; }
FAKE CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (ordinal < 0 || ordinal >= kDevices) return CUDA_ERROR_INVALID_DEVICE;
  return *device = ordinal, CUDA_SUCCESS;
}
FAKE CUresult cuDeviceGetName(char* name, int length, CUdevice) {
  std::snprintf(name, std::size_t(length), "fake device");
  return CUDA_SUCCESS;
}
FAKE CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice) {
  *value = (which == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED &&
            std::getenv("FAKE_NO_PAGES") == nullptr) ||
           (which == CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED &&
            std::getenv("FAKE_NO_DESCRIPTORS") == nullptr) ||
           (which == CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED &&
            std::getenv("FAKE_RDMA") != nullptr);
  return CUDA_SUCCESS;
}
FAKE CUresult cuDeviceCanAccessPeer(int* can, CUdevice a, CUdevice b) {
  return *can = a != b, CUDA_SUCCESS;
}
FAKE CUresult cuGetErrorName(CUresult result, const char** name) {
  return *name = result == CUDA_SUCCESS ? "CUDA_SUCCESS" : "an error of the fake driver",
         CUDA_SUCCESS;
}

// ---- Contexts -----------------------------------------------------------------------------------

FAKE CUresult cuCtxGetCurrent(CUcontext* out) { return *out = currentContext(), CUDA_SUCCESS; }
FAKE CUresult cuCtxSetCurrent(CUcontext context) {
  if (!stack.empty()) stack.pop_back();
  if (context != nullptr) stack.push_back(context);
  return CUDA_SUCCESS;
}
FAKE CUresult cuCtxPushCurrent_v2(CUcontext context) {
  return stack.push_back(context), CUDA_SUCCESS;
}
FAKE CUresult cuCtxPopCurrent_v2(CUcontext* out) {
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *out = stack.back();
  return stack.pop_back(), CUDA_SUCCESS;
}
FAKE CUresult cuCtxGetDevice(CUdevice* out) {
  FAKE_BEGIN("cuCtxGetDevice");
  return *out = currentContext()->ordinal, CUDA_SUCCESS;
}
FAKE CUresult cuCtxSynchronize() {
  FAKE_BEGIN("cuCtxSynchronize");
  const auto result = CUresult(codeOf(current().sim->synchronizeDevice()));
  count("the end of cuCtxSynchronize");
  return result;
}
FAKE CUresult cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice ordinal) {
  ++retained[ordinal];
  return *out = &primary[ordinal], CUDA_SUCCESS;
}
FAKE CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned* flags, int* active) {
  *flags = 0;
  return *active = retained[ordinal] > 0, CUDA_SUCCESS;
}
FAKE CUresult cuDevicePrimaryCtxReset_v2(CUdevice ordinal) {
  count("cuDevicePrimaryCtxReset");
  reset(device(ordinal));
  return retained[ordinal] = 0, CUDA_SUCCESS;
}
FAKE CUresult cuDevicePrimaryCtxRelease_v2(CUdevice ordinal) {
  if (--retained[ordinal] > 0) return CUDA_SUCCESS;
  return cuDevicePrimaryCtxReset_v2(ordinal);
}
// As programs call them that were built with a CUDA before 11.
extern "C" CUresult oldReset(CUdevice) __asm__("cuDevicePrimaryCtxReset");
FAKE CUresult oldReset(CUdevice ordinal) { return cuDevicePrimaryCtxReset_v2(ordinal); }
extern "C" CUresult oldRelease(CUdevice) __asm__("cuDevicePrimaryCtxRelease");
FAKE CUresult oldRelease(CUdevice ordinal) { return cuDevicePrimaryCtxRelease_v2(ordinal); }
FAKE CUresult cuCtxCreate_v2(CUcontext* out, unsigned, CUdevice ordinal) {
  *out = new CUctx_st{ordinal, false};
  return cuCtxPushCurrent_v2(*out);
}
FAKE CUresult cuCtxDestroy_v2(CUcontext context) {
  count("cuCtxDestroy");
  if (context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  if (currentContext() == context) stack.pop_back();
  delete context;
  return CUDA_SUCCESS;
}
FAKE CUresult cuCtxEnablePeerAccess(CUcontext, unsigned) {
  FAKE_BEGIN("cuCtxEnablePeerAccess");
  return CUDA_SUCCESS;
}

// ---- Looking up ---------------------------------------------------------------------------------

// Names have several spellings; the newest up to the version that is asked for is answered.
FAKE CUresult cuGetProcAddress_v2(const char* name, void** out, int version, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult* status) {
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  const bool new_proc = std::strcmp(name, "cuGetProcAddress") != 0 || version >= 12000;
  // Not by name in this process: another library may stand before this one there.
  static void* const self = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  using Look = void* (*)(void*, const char*);
  static const auto look = reinterpret_cast<Look>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34"));
  *out = nullptr;
  for (const char* const suffix : {"_v4", "_v3", "_v2", ""}) {
    if (version < 12050 && std::strcmp(suffix, "_v4") == 0) continue;
    if (!new_proc && *suffix != '\0') continue;
    const std::string spelled = std::string(name) + suffix;
    if (per_thread) *out = look(self, (spelled + "_ptsz").c_str());
    if (*out == nullptr) *out = look(self, spelled.c_str());
    if (*out != nullptr) break;
  }
  if (status != nullptr) {
    *status = *out != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return *out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

extern "C" CUresult oldGetProcAddress(const char*, void**, int,
                                      cuuint64_t) __asm__("cuGetProcAddress");
FAKE CUresult oldGetProcAddress(const char* name, void** out, int version, cuuint64_t flags) {
  return cuGetProcAddress_v2(name, out, version, flags, nullptr);
}
