// The CUDA backend of a build without CUDA: the same doors, all of them shut.
#include "allocator/device/vendor/absent.hpp"
#include "allocator/device/vendor/vendor.hpp"

namespace cistern::cuda {

Result<int> deviceCount() { return notBuiltIn("CUDA", kCudaSdk); }
Result<std::unique_ptr<Device>> open(int) { return notBuiltIn("CUDA", kCudaSdk); }

constinit const Backend kTableEntry = absentBackend("cuda", deviceCount, open);

}  // namespace cistern::cuda
