// The CUDA backend of a build without CUDA: the same doors, all of them shut.
#include "allocator/device/vendor/absent.hpp"
#include "allocator/device/vendor/vendor.hpp"

namespace cistern::cuda {

bool compiledIn() { return false; }
Result<int> deviceCount() { return notBuiltIn("CUDA"); }
Result<std::unique_ptr<Device>> open(int) { return notBuiltIn("CUDA"); }

}  // namespace cistern::cuda
