// PyTorch's native CUDA allocator behind abi.hpp: libcistern_peer_torch.so. CMake builds it where
// python3 has PyTorch; by hand, beside the programs, from the root of the repository:
//
//   T=$(python3 -c "import os, torch; print(os.path.dirname(torch.__file__))"); g++ -std=c++20 -O3
//     -shared -fPIC -D_GLIBCXX_USE_CXX11_ABI=1 -I. -isystem $T/include -isystem
//     $T/include/torch/csrc/api/include -isystem ${CUDA_HOME:-/usr/local/cuda}/include
//     bench/peers/torch/library.cpp -o libcistern_peer_torch.so -L$T/lib -Wl,--no-as-needed -lc10
//     -lc10_cuda -ltorch_cpu -ltorch_cuda -ltorch -Wl,-rpath,$T/lib
#include <string>

#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include "bench/peers/torch/abi.hpp"

namespace {

decltype(c10::cuda::CUDACachingAllocator::get()) native = nullptr;
c10::cuda::MempoolId_t capture_pool{1'000'000, 0};

}  // namespace

extern "C" {

const char* cisternTorchOpen(int ordinal) {
  static std::string message;
  try {
    at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
    native = c10::cuda::CUDACachingAllocator::get();
    void* probe = native->raw_alloc_with_stream(1, nullptr);
    native->raw_delete(probe);
    return ordinal == 0 ? nullptr : "only device 0 is supported";
  } catch (const std::exception& error) {
    message = error.what();
    return message.c_str();
  }
}

void* cisternTorchAllocate(std::size_t bytes, void* stream) {
  try {
    return native->raw_alloc_with_stream(bytes, static_cast<cudaStream_t>(stream));
  } catch (const std::exception&) {
    return nullptr;
  }
}

void cisternTorchFree(void* block) { native->raw_delete(block); }

void cisternTorchEmpty() { native->emptyCache(); }

void cisternTorchBeginCapture() {
  capture_pool.first += 1;
  native->beginAllocateToPool(0, capture_pool, [](cudaStream_t) { return true; });
}
void cisternTorchEndCapture() { native->endAllocateToPool(0, capture_pool); }
void cisternTorchReleaseCapture() {
  native->releasePool(0, capture_pool);
  native->emptyCache();
}

std::size_t cisternTorchReservedPeak() {
  const std::size_t peak = std::size_t(native->getDeviceStats(0).reserved_bytes[0].peak);
  native->resetPeakStats(0);
  return peak;
}
}
