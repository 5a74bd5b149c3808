#include <cuda_runtime_api.h>

#include "bench/capture/graph_memory.hpp"

namespace cistern::bench {

std::uint64_t graphMemoryPeak(int device) {
  std::uint64_t bytes = 0;
  (void)cudaDeviceGetGraphMemAttribute(device, cudaGraphMemAttrReservedMemHigh, &bytes);
  return bytes;
}

void forgetGraphMemory(int device) {
  std::uint64_t zero = 0;
  (void)cudaDeviceGraphMemTrim(device);
  (void)cudaDeviceSetGraphMemAttribute(device, cudaGraphMemAttrReservedMemHigh, &zero);
}

}  // namespace cistern::bench
