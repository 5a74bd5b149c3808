// A libcudart of its own, which says that it is of version FAKE_VERSION (12080 for 12.8). It has
// two devices, plain memory that is only counted, and none of the functions that a program can do
// without. The header of the runtime would declare the functions of one version alone.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <cuda.h>

namespace {

constexpr int kInvalidValue = 1, kOutOfMemory = 2, kInvalidDevice = 101;
constexpr std::size_t kMemory = std::size_t{1} << 30;
constexpr std::uintptr_t kAddress = 0x7000'0000'0000;

thread_local CUcontext current = nullptr;
thread_local int last = 0;
std::size_t allocated = 0;
int nodes[2];  // the addresses are the handles of two nodes

int answer(int error) {
  if (error != 0) last = error;
  return error;
}

// ---- The driver
// ----------------------------------------------------------------------------------

CUcontext contextOf(int device) { return reinterpret_cast<CUcontext>(std::intptr_t(device) + 1); }

CUresult getCurrent(CUcontext* context) {
  *context = current;
  return CUDA_SUCCESS;
}
CUresult setCurrent(CUcontext context) {
  current = context;
  return CUDA_SUCCESS;
}
CUresult deviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}
CUresult retain(CUcontext* context, CUdevice device) {
  *context = contextOf(device);
  return CUDA_SUCCESS;
}
CUresult deviceName(char* name, int bytes, CUdevice) {
  if (bytes < 5) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(name, "fake", 5);
  return CUDA_SUCCESS;
}
CUresult attribute(int* value, CUdevice_attribute, CUdevice) {
  *value = 0;
  return CUDA_SUCCESS;
}
/// Every other function: a device without virtual memory calls none of them.
CUresult other() { return CUDA_ERROR_NOT_SUPPORTED; }

template <class Function>
void* address(Function* function) {
  return reinterpret_cast<void*>(function);
}

void* driversFunction(const char* name) {
  struct Row {
    const char* name;
    void* function;
  };
  const Row rows[] = {{"cuCtxGetCurrent", address(&getCurrent)},
                      {"cuCtxSetCurrent", address(&setCurrent)},
                      {"cuDeviceGet", address(&deviceGet)},
                      {"cuDeviceGetName", address(&deviceName)},
                      {"cuDeviceGetAttribute", address(&attribute)},
                      {"cuDevicePrimaryCtxRetain", address(&retain)}};
  for (const Row& row : rows) {
    if (std::strcmp(row.name, name) == 0) return row.function;
  }
  return address(&other);
}

/// An active capture, whose id is the major version, with two nodes.
int captureInfo(int* status, unsigned long long* id, void*** frontier, std::size_t* count) {
  static void* both[] = {&nodes[0], &nodes[1]};
  *status = 1;
  *id = FAKE_VERSION / 1000;
  if (frontier != nullptr) *frontier = both;
  if (count != nullptr) *count = 2;
  return 0;
}

int dependencies(void** found, std::size_t* count) {
  if (*count < 1) return answer(kInvalidValue);
  found[0] = &nodes[1];
  *count = 1;
  return 0;
}

}  // namespace

#define FAKE_API extern "C" __attribute__((visibility("default")))

// ---- The runtime
// ---------------------------------------------------------------------------------

FAKE_API int cudaRuntimeGetVersion(int* version) {
  *version = FAKE_VERSION;
  return 0;
}
FAKE_API int cudaDriverGetVersion(int* version) {
  const char* const told = std::getenv("FAKE_DRIVER_VERSION");
  *version = told == nullptr ? 13000 : std::atoi(told);
  return 0;
}
FAKE_API int cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                              unsigned long long, int* found) {
  *function = driversFunction(name);
  *found = 0;
  return 0;
}

FAKE_API int cudaGetDeviceCount(int* count) {
  *count = 2;
  return 0;
}
FAKE_API int cudaGetDevice(int* device) {
  *device = current == contextOf(1) ? 1 : 0;
  return 0;
}
FAKE_API int cudaSetDevice(int device) {
  if (device < 0 || device > 1) return answer(kInvalidDevice);
  current = contextOf(device);
  return 0;
}
FAKE_API int cudaDeviceGetAttribute(int* value, int, int) {
  *value = 0;
  return 0;
}

FAKE_API int cudaGetLastError() {
  const int error = last;
  last = 0;
  return error;
}
FAKE_API int cudaPeekAtLastError() { return last; }
FAKE_API const char* cudaGetErrorName(int) { return "a fake error"; }
FAKE_API const char* cudaGetErrorString(int) { return "the fake runtime's text"; }

FAKE_API int cudaMalloc(void** memory, std::size_t bytes) {
  if (bytes > kMemory - allocated) return answer(kOutOfMemory);
  *memory = reinterpret_cast<void*>(kAddress + allocated);
  allocated += bytes;
  return 0;
}

// ---- The functions whose names changed
// -----------------------------------------------------------

#if FAKE_VERSION >= 13000

FAKE_API int cudaStreamGetCaptureInfo(void*, int* status, unsigned long long* id, void**,
                                      void*** frontier, const void**, std::size_t* count) {
  return captureInfo(status, id, frontier, count);
}
FAKE_API int cudaGraphNodeGetDependencies(void*, void** found, void*, std::size_t* count) {
  return dependencies(found, count);
}

#else

FAKE_API int cudaStreamGetCaptureInfo_v3(void*, int* status, unsigned long long* id, void**,
                                         void*** frontier, const void**, std::size_t* count) {
  return captureInfo(status, id, frontier, count);
}
FAKE_API int cudaGraphNodeGetDependencies_v2(void*, void** found, void*, std::size_t* count) {
  return dependencies(found, count);
}
// With fewer arguments: a call in CUDA 13's form would go wrong.
FAKE_API int cudaStreamGetCaptureInfo(void*, int*, unsigned long long*) { std::abort(); }
FAKE_API int cudaGraphNodeGetDependencies(void*, void**, std::size_t*) { std::abort(); }

#endif
