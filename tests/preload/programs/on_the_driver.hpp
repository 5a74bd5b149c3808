// What programs on the driver do again and again: for order_program.cpp and random_program.cpp.
#pragma once

#include <cstdlib>

#include "tests/preload/fake_driver/fake_driver.hpp"
#include "tests/preload/programs/expect.hpp"

constexpr std::size_t kBytes = 1 << 20;
constexpr unsigned long long kLong = 1'000'000;

inline CUdeviceptr allocated(std::size_t bytes = kBytes) {
  CUdeviceptr memory = 0;
  EXPECT(cuMemAlloc(&memory, bytes) == CUDA_SUCCESS);
  return memory;
}
inline CUstream makeStream(unsigned flags) {
  CUstream made = nullptr;
  EXPECT(cuStreamCreate(&made, flags) == CUDA_SUCCESS);
  return made;
}
inline void launch(CUstream stream, CUdeviceptr memory, std::size_t bytes = kBytes,
                   unsigned long long nanoseconds = kLong) {
  int writes = 1;
  void* parameters[] = {&memory, &bytes, &writes, &nanoseconds};
  EXPECT(cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr) == CUDA_SUCCESS);
}

inline void begin() {
  CUcontext context = nullptr;
  EXPECT(cuInit(0) == CUDA_SUCCESS);
  EXPECT(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
  EXPECT(cuCtxSetCurrent(context) == CUDA_SUCCESS);
}

// ---- Captures
// ------------------------------------------------------------------------------------

// The thread allows itself what would be an error in a capture.
inline CUstream beginCapture(CUstream stream) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  EXPECT(cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS);
  EXPECT(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  return stream;
}
inline CUgraph endCapture(CUstream stream) {
  CUgraph graph = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  EXPECT(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
  EXPECT(cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS);
  return graph;
}

/// A number in the environment; 0 where there is none.
inline std::size_t number(const char* name) {
  const char* const given = std::getenv(name);
  return given == nullptr ? 0 : std::strtoull(given, nullptr, 10);
}

/// Programs at random, by the seed in the environment: random_program.cpp.
void randomStreams();
void randomThreads();
