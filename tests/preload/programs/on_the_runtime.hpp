// A program on the fake CUDA runtime, the archive or the shared library. See gpu_names.hpp.
#pragma once

#include "tests/preload/fake_driver/fake_driver.hpp"
#include "tests/preload/fake_runtime/fake_runtime.hpp"

namespace gpu {

using Stream = fakeStream_t;
using Graph = void*;

// Calls are counted by these names.
constexpr const char* kMalloc = "cuMemAlloc";
constexpr const char* kMallocAsync = "cuMemAllocAsync";
constexpr bool kHasPages = true;
constexpr bool kGivesNothing = false;  ///< where nothing is asked for

inline void** out(Memory* memory) { return reinterpret_cast<void**>(memory); }

inline int malloc(Memory* memory, std::size_t bytes) { return cudaMalloc(out(memory), bytes); }
inline int free(void* memory) { return cudaFree(memory); }
inline int mallocAsync(Memory* memory, std::size_t bytes, Stream stream) {
  return cudaMallocAsync(out(memory), bytes, stream);
}
inline int freeAsync(Memory memory, Stream stream) { return cudaFreeAsync(memory, stream); }
/// In the order of the thread's own default stream, by a spelling of its own where there is one.
inline int mallocOwn(Memory* memory, std::size_t bytes) {
  return cudaMallocAsync_ptsz(out(memory), bytes, nullptr);
}
inline int freeOwn(Memory memory) { return cudaFreeAsync_ptsz(memory, nullptr); }
inline int mallocManaged(Memory* memory, std::size_t bytes) {
  return cudaMallocManaged(out(memory), bytes, 1);
}
inline int memoryInfo(std::size_t* free_bytes, std::size_t* total) {
  return cudaMemGetInfo(free_bytes, total);
}
inline int reset() { return cudaDeviceReset(); }
inline int setDevice(int device) { return cudaSetDevice(device); }

using IpcHandle = fakeIpcMemHandle_t;
inline void begin() {}
inline int getHandle(IpcHandle* handle, Memory memory) {
  return cudaIpcGetMemHandle(handle, memory);
}
inline int openHandle(Memory* memory, const IpcHandle& handle) {
  return cudaIpcOpenMemHandle(out(memory), handle, 1);
}
inline int closeHandle(Memory memory) { return cudaIpcCloseMemHandle(memory); }
inline int write(Memory to, const void* from, std::size_t bytes) {
  return cudaMemcpy(to, from, bytes, 1);
}
inline int read(void* to, Memory from, std::size_t bytes) { return cudaMemcpy(to, from, bytes, 2); }

inline int createStream(Stream* stream, unsigned flags) {
  return cudaStreamCreateWithFlags(stream, flags);
}
inline int destroyStream(Stream stream) { return cudaStreamDestroy(stream); }
inline int synchronize() { return cudaDeviceSynchronize(); }

/// By a function that nobody knows.
inline int launch(Stream stream, Memory memory, std::size_t bytes, unsigned long long time) {
  const auto queue = driverFunction<decltype(cuFakeLaunch)>("cuFakeLaunch");
  return queue(stream, "work", CUdeviceptr(memory), bytes, 1, time);
}

inline int beginCapture(Stream stream, int mode) { return cudaStreamBeginCapture(stream, mode); }
inline int endCapture(Stream stream, Graph* graph) { return cudaStreamEndCapture(stream, graph); }
inline int exchangeMode(int mode) { return cudaThreadExchangeStreamCaptureMode(&mode); }

/// A function that allocates, as programs are given it at run time.
inline int mallocByEntryPoint(Memory* memory, std::size_t bytes) {
  void* found = nullptr;
  EXPECT(cudaGetDriverEntryPointByVersion("cuMemAlloc", &found, 12000, 0) == 0);
  return reinterpret_cast<decltype(&cuMemAlloc_v2)>(found)(reinterpret_cast<CUdeviceptr*>(memory),
                                                           bytes);
}

inline unsigned races() { return driverFunction<decltype(cuFakeRaces)>("cuFakeRaces")(); }
inline unsigned long long calls(const char* name) {
  return driverFunction<decltype(cuFakeCalls)>("cuFakeCalls")(name);
}
inline unsigned long long now() { return driverFunction<decltype(cuFakeNow)>("cuFakeNow")(); }

}  // namespace gpu
