// HIP test work in a build without HIP.
#include "tests/support/vendor_work.hpp"

namespace cistern::test {
std::unique_ptr<DeviceWork> hipWork(int) { return nullptr; }
}  // namespace cistern::test
