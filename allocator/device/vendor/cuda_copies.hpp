// Many copies over the bus in one call of the driver, which has it since CUDA 12.8. Declared here:
// the headers of a build may be older, and the function of CUDA 13 has another form.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "allocator/device/vendor/cuda_driver.hpp"
#include "cistern/device.hpp"

namespace cistern::cuda {

/// All in one call. cudaErrorNotSupported where the driver has none. Pre: `stream` is not 0.
inline cudaError_t copyTogether(std::span<const BusCopy> copies, bool out, cudaStream_t stream) {
  if (driver().copy_batch == nullptr) return cudaErrorNotSupported;
  std::vector<CUdeviceptr> to, from;
  std::vector<std::size_t> bytes;
  for (const BusCopy& copy : copies) {
    if (copy.bytes == 0) continue;
    const CUdeviceptr host = reinterpret_cast<CUdeviceptr>(copy.host);
    to.push_back(out ? host : copy.device);
    from.push_back(out ? copy.device : host);
    bytes.push_back(copy.bytes);
  }
  if (bytes.empty()) return cudaSuccess;
  BatchAttributes attributes{};
  attributes.source_order = BatchAttributes::kInStreamOrder;
  std::size_t first = 0, failed = 0;
  return asRuntime(driver().copy_batch(to.data(), from.data(), bytes.data(), bytes.size(),
                                       &attributes, &first, 1, &failed, stream));
}

}  // namespace cistern::cuda
