// The driver. PyTorch looks some functions up by name, and opens libcuda.so.1 for others: that is
// this library's name.
#include <dlfcn.h>

#include "fake_runtime.hpp"

namespace {

int unsupported() { return 801; }  // CUDA_ERROR_NOT_SUPPORTED

}  // namespace

/// The first device has a context from the beginning. Another is as good without.
FAKE_API int cuDevicePrimaryCtxGetState(int ordinal, unsigned* flags, int* active) {
  *flags = 0;
  *active = ordinal == 0 ? 1 : 0;
  return 0;
}
FAKE_API int cuCtxGetCurrent(void** context) {
  *context = reinterpret_cast<void*>(std::uintptr_t(fake::currentOrdinal() + 1));
  return 0;
}
FAKE_API int cuCtxSetCurrent(void* context) {
  const auto number = int(reinterpret_cast<std::uintptr_t>(context));
  return number == 0 || cudaSetDevice(number - 1) == cudaSuccess ? 0 : 201;  // no such context
}
FAKE_API int cuGetErrorString(int, const char** text) {
  *text = "an error of the simulated driver";
  return 0;
}

// libcaffe2_nvrtc.so does not load without these.
#define CUDA_WITHOUT(name) \
  FAKE_API int name() { return unsupported(); }
CUDA_WITHOUT(cuDeviceGet)
CUDA_WITHOUT(cuDeviceGetAttribute)
CUDA_WITHOUT(cuDevicePrimaryCtxRetain)
CUDA_WITHOUT(cuFuncGetAttribute)
CUDA_WITHOUT(cuFuncSetAttribute)
CUDA_WITHOUT(cuFuncSetCacheConfig)
CUDA_WITHOUT(cuLaunchCooperativeKernel)
CUDA_WITHOUT(cuLaunchKernel)
CUDA_WITHOUT(cuLinkAddData_v2)
CUDA_WITHOUT(cuLinkComplete)
CUDA_WITHOUT(cuLinkCreate_v2)
CUDA_WITHOUT(cuModuleGetFunction)
CUDA_WITHOUT(cuModuleLoad)
CUDA_WITHOUT(cuModuleLoadData)
CUDA_WITHOUT(cuModuleLoadDataEx)
CUDA_WITHOUT(cuModuleUnload)
CUDA_WITHOUT(cuOccupancyMaxActiveBlocksPerMultiprocessor)
CUDA_WITHOUT(cuPointerGetAttribute)
CUDA_WITHOUT(cuTensorMapEncodeTiled)

/// Found for every name: a function that has no answer of its own is not supported.
FAKE_API cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                                      unsigned long long,
                                                      cudaDriverEntryPointQueryResult* found) {
  static void* const self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  *function = self != nullptr ? dlsym(self, name) : nullptr;
  if (*function == nullptr) *function = reinterpret_cast<void*>(&unsupported);
  if (found != nullptr) *found = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
#if CUDART_VERSION < 13000
FAKE_API cudaError_t cudaGetDriverEntryPoint(const char* name, void** function,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* found) {
  return cudaGetDriverEntryPointByVersion(name, function, 0, flags, found);
}
#endif
