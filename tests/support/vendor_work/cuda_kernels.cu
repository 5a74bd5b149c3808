#include "tests/support/vendor_work/cuda_kernels.hpp"

namespace cistern::test {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::size_t kMostBlocks = 2048;  // enough to fill a large GPU; loops do the rest

__device__ std::size_t firstWord() { return std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ std::size_t stride() { return std::size_t(gridDim.x) * blockDim.x; }

__global__ void fillKernel(std::uint32_t* words, std::size_t count, std::uint32_t seed) {
  for (std::size_t i = firstWord(); i < count; i += stride()) words[i] = seed + std::uint32_t(i);
}

__global__ void verifyKernel(const std::uint32_t* words, std::size_t count, std::uint32_t seed,
                             unsigned long long* wrong) {
  unsigned long long mine = 0;
  for (std::size_t i = firstWord(); i < count; i += stride()) {
    if (words[i] != seed + std::uint32_t(i)) ++mine;
  }
  if (mine != 0) atomicAdd(wrong, mine);
}

__device__ std::uint64_t globalNanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void delayKernel(std::uint64_t nanoseconds) {
  const std::uint64_t start = globalNanoseconds();
  while (globalNanoseconds() - start < nanoseconds) __nanosleep(500);
}

unsigned blocksFor(std::size_t count) {
  const std::size_t wanted = (count + kThreads - 1) / kThreads;
  return unsigned(wanted < kMostBlocks ? wanted : kMostBlocks);
}

}  // namespace

cudaError_t launchFill(cudaStream_t stream, std::uint32_t* words, std::size_t count,
                       std::uint32_t seed) {
  if (count == 0) return cudaSuccess;
  fillKernel<<<blocksFor(count), kThreads, 0, stream>>>(words, count, seed);
  return cudaGetLastError();
}

cudaError_t launchVerify(cudaStream_t stream, const std::uint32_t* words, std::size_t count,
                         std::uint32_t seed, unsigned long long* wrong) {
  if (count == 0) return cudaSuccess;
  verifyKernel<<<blocksFor(count), kThreads, 0, stream>>>(words, count, seed, wrong);
  return cudaGetLastError();
}

cudaError_t launchDelay(cudaStream_t stream, std::uint64_t nanoseconds) {
  delayKernel<<<1, 1, 0, stream>>>(nanoseconds);
  return cudaGetLastError();
}

}  // namespace cistern::test
