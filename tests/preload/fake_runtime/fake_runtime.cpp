#include "tests/preload/fake_runtime/fake_runtime.hpp"

#include <cstdio>
#include <cstdlib>

#include <cuda.h>
#include <dlfcn.h>

namespace {

using GetProcAddress = decltype(&::cuGetProcAddress_v2);

GetProcAddress getProcAddress() {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  static const auto get =
      library == nullptr ? nullptr
                         : reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  return get;
}

template <class Function>
Function find(const char* name, int version = 12000, cuuint64_t flags = 0) {
  void* found = nullptr;
  if (getProcAddress() == nullptr ||
      getProcAddress()(name, &found, version, flags, nullptr) != CUDA_SUCCESS) {
    std::fprintf(stderr, "the fake runtime finds no %s\n", name);
    std::abort();
  }
  return reinterpret_cast<Function>(found);
}

// The first call of a thread makes the first device current.
void begin() {
  static const auto current = find<decltype(&::cuCtxGetCurrent)>("cuCtxGetCurrent");
  CUcontext context = nullptr;
  if (current(&context) == CUDA_SUCCESS && context == nullptr) (void)cudaSetDevice(0);
}

}  // namespace

// The driver's function that the header calls `symbol`, by the name that cuGetProcAddress knows.
#define CALL(symbol, name, ...)                                   \
  [&] {                                                           \
    static const auto function = find<decltype(&::symbol)>(name); \
    return int(function(__VA_ARGS__));                            \
  }()

int cudaSetDevice(int device) {
  CUcontext context = nullptr;
  const int error = CALL(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", &context, device);
  return error != 0 ? error : CALL(cuCtxSetCurrent, "cuCtxSetCurrent", context);
}

int cudaMalloc(void** out, std::size_t bytes) {
  begin();
  return CALL(cuMemAlloc_v2, "cuMemAlloc", reinterpret_cast<CUdeviceptr*>(out), bytes);
}
int cudaFree(void* pointer) {
  begin();
  return CALL(cuMemFree_v2, "cuMemFree", reinterpret_cast<CUdeviceptr>(pointer));
}
int cudaMallocAsync(void** out, std::size_t bytes, fakeStream_t stream) {
  begin();
  return CALL(cuMemAllocAsync, "cuMemAllocAsync", reinterpret_cast<CUdeviceptr*>(out), bytes,
              stream);
}
int cudaFreeAsync(void* pointer, fakeStream_t stream) {
  begin();
  return CALL(cuMemFreeAsync, "cuMemFreeAsync", reinterpret_cast<CUdeviceptr>(pointer), stream);
}
int cudaMallocAsync_ptsz(void** out, std::size_t bytes, fakeStream_t stream) {
  begin();
  static const auto allocate = find<decltype(&::cuMemAllocAsync)>(
      "cuMemAllocAsync", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  return allocate(reinterpret_cast<CUdeviceptr*>(out), bytes, stream);
}
int cudaFreeAsync_ptsz(void* pointer, fakeStream_t stream) {
  begin();
  static const auto free = find<decltype(&::cuMemFreeAsync)>(
      "cuMemFreeAsync", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  return free(reinterpret_cast<CUdeviceptr>(pointer), stream);
}
int cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total) {
  begin();
  return CALL(cuMemGetInfo_v2, "cuMemGetInfo", free_bytes, total);
}
int cudaMallocManaged(void** out, std::size_t bytes, unsigned flags) {
  begin();
  return CALL(cuMemAllocManaged, "cuMemAllocManaged", reinterpret_cast<CUdeviceptr*>(out), bytes,
              flags);
}
int cudaMemcpy(void* to, const void* from, std::size_t bytes, int kind) {
  begin();
  if (kind == 1)  // to the device
    return CALL(cuMemcpyHtoD_v2, "cuMemcpyHtoD", reinterpret_cast<CUdeviceptr>(to), from, bytes);
  return CALL(cuMemcpyDtoH_v2, "cuMemcpyDtoH", to, reinterpret_cast<CUdeviceptr>(from), bytes);
}
int cudaIpcGetMemHandle(fakeIpcMemHandle_t* handle, void* pointer) {
  begin();
  return CALL(cuIpcGetMemHandle, "cuIpcGetMemHandle", reinterpret_cast<CUipcMemHandle*>(handle),
              reinterpret_cast<CUdeviceptr>(pointer));
}
int cudaIpcOpenMemHandle(void** out, fakeIpcMemHandle_t handle, unsigned flags) {
  begin();
  return CALL(cuIpcOpenMemHandle, "cuIpcOpenMemHandle", reinterpret_cast<CUdeviceptr*>(out),
              reinterpret_cast<CUipcMemHandle&>(handle), flags);
}
int cudaIpcCloseMemHandle(void* pointer) {
  begin();
  return CALL(cuIpcCloseMemHandle, "cuIpcCloseMemHandle", reinterpret_cast<CUdeviceptr>(pointer));
}
int cudaStreamCreateWithFlags(fakeStream_t* stream, unsigned flags) {
  begin();
  return CALL(cuStreamCreate, "cuStreamCreate", stream, flags);
}
int cudaStreamDestroy(fakeStream_t stream) {
  return CALL(cuStreamDestroy_v2, "cuStreamDestroy", stream);
}
int cudaStreamBeginCapture(fakeStream_t stream, int mode) {
  return CALL(cuStreamBeginCapture_v2, "cuStreamBeginCapture", stream, CUstreamCaptureMode(mode));
}
int cudaStreamEndCapture(fakeStream_t stream, void** graph) {
  return CALL(cuStreamEndCapture, "cuStreamEndCapture", stream, reinterpret_cast<CUgraph*>(graph));
}
int cudaThreadExchangeStreamCaptureMode(int* mode) {
  return CALL(cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode",
              reinterpret_cast<CUstreamCaptureMode*>(mode));
}
int cudaDeviceSynchronize() {
  begin();
  return CALL(cuCtxSynchronize, "cuCtxSynchronize");
}
int cudaDeviceReset() {
  begin();
  CUdevice device = 0;
  (void)CALL(cuCtxGetDevice, "cuCtxGetDevice", &device);
  return CALL(cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", device);
}
int cudaGetDriverEntryPointByVersion(const char* name, void** out, unsigned version,
                                     unsigned long long flags) {
  return getProcAddress()(name, out, int(version), flags, nullptr);
}
