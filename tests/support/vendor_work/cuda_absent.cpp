// CUDA test work in a build that cannot compile CUDA kernels.
#include "tests/support/vendor_work.hpp"

namespace cistern::test {
std::unique_ptr<DeviceWork> cudaWork(int) { return nullptr; }
}  // namespace cistern::test
