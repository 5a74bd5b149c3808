// Kernels: each is queued on its stream, or captured there, and does nothing.
#include <cuda_runtime.h>

#include "fake_runtime.hpp"

FAKE_API cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, std::size_t,
                                      cudaStream_t stream) {
  return fake::launch(stream, "kernel");
}
FAKE_API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void*, void**) {
  return fake::launch(config->stream, "kernel");
}
// A launch by <<<>>> in a program that a newer nvcc has compiled.
FAKE_API cudaError_t __cudaGetKernel(void** kernel, const void* entry) {
  *kernel = const_cast<void*>(entry);
  return cudaSuccess;
}
FAKE_API cudaError_t __cudaLaunchKernel(void*, dim3, dim3, void**, std::size_t,
                                        cudaStream_t stream) {
  return fake::launch(stream, "kernel");
}
FAKE_API cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 32;
  attributes->ptxVersion = attributes->binaryVersion = 90;
  return cudaSuccess;
}
FAKE_API cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) {
  return cudaSuccess;
}
FAKE_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks,
                                                                            const void*, int,
                                                                            std::size_t, unsigned) {
  *blocks = 2;
  return cudaSuccess;
}
FAKE_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int,
                                                                   std::size_t) {
  *blocks = 2;
  return cudaSuccess;
}
