#include "uncached.hpp"

#include <c10/cuda/CUDAException.h>
#include <c10/util/Exception.h>

namespace cistern_torch {

void* Uncached::allocate(std::size_t bytes) {
  void* pointer = nullptr;
  const cudaError_t status = cudaMalloc(&pointer, bytes);
  if (status == cudaErrorMemoryAllocation) (void)cudaGetLastError();
  TORCH_CHECK_WITH(OutOfMemoryError, status != cudaErrorMemoryAllocation,
                   "CUDA out of memory. cudaMalloc of ", bytes,
                   " bytes failed; caching is switched off");
  C10_CUDA_CHECK(status);
  const std::lock_guard lock(mutex_);
  blocks_.insert(pointer);
  count_.store(blocks_.size(), std::memory_order_release);
  return pointer;
}

bool Uncached::holds(void* pointer) {
  if (count_.load(std::memory_order_acquire) == 0) return false;
  const std::lock_guard lock(mutex_);
  return blocks_.count(pointer) != 0;
}

bool Uncached::free(void* pointer) {
  if (count_.load(std::memory_order_acquire) == 0) return false;
  {
    const std::lock_guard lock(mutex_);
    if (blocks_.erase(pointer) == 0) return false;
    count_.store(blocks_.size(), std::memory_order_release);
  }
  C10_CUDA_CHECK(cudaFree(pointer));
  return true;
}

}  // namespace cistern_torch
