// HIP test work: none, because kernels need hipcc, which the HIP backend does without.
#include "tests/support/vendor_work.hpp"

namespace cistern::test {
std::unique_ptr<DeviceWork> hipWork(int) { return nullptr; }
}  // namespace cistern::test
