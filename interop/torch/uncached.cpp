#include "uncached.hpp"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/util/Exception.h>

#include "torch_texts.hpp"

namespace cistern_torch {
namespace {

std::string refusalOf(std::size_t bytes) {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  C10_CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
  return outOfMemoryText({bytes, int(c10::cuda::current_device()), total_bytes, free_bytes});
}

bool refusedInCapture(cudaError_t status) {
  return status == cudaErrorStreamCaptureUnsupported || status == cudaErrorStreamCaptureImplicit;
}

}  // namespace

// The first that is refused ends the attempt: the others are likely to be, too.
void Uncached::freeLeft() {
  const std::lock_guard lock(mutex_);
  while (!left_.empty() && cudaFree(left_.back()) == cudaSuccess) left_.pop_back();
  if (!left_.empty()) (void)cudaGetLastError();
}

void* Uncached::allocate(std::size_t bytes) {
  freeLeft();
  void* pointer = nullptr;
  const cudaError_t status = cudaMalloc(&pointer, bytes);
  if (status == cudaErrorMemoryAllocation) (void)cudaGetLastError();
  TORCH_CHECK_WITH(OutOfMemoryError, status != cudaErrorMemoryAllocation, refusalOf(bytes),
                   " Caching is switched off.");
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
    if (blocks_.count(pointer) == 0) return false;
    left_.reserve(left_.size() + 1);
    blocks_.erase(pointer);
    count_.store(blocks_.size(), std::memory_order_release);
  }
  const cudaError_t status = cudaFree(pointer);
  if (status != cudaSuccess) {
    const std::lock_guard lock(mutex_);
    left_.push_back(pointer);
  }
  if (refusedInCapture(status)) {
    (void)cudaGetLastError();
  } else {
    C10_CUDA_CHECK(status);
  }
  return true;
}

}  // namespace cistern_torch
