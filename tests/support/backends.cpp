// Which backends a test runs on.
#include "tests/support/device_work.hpp"
#include "tests/support/sim_work.hpp"
#include "tests/support/vendor_work.hpp"

namespace cistern::test {

std::vector<std::unique_ptr<DeviceWork>> presentBackends() {
  std::vector<std::unique_ptr<DeviceWork>> present;
  present.push_back(simWork());
  if (auto cuda = cudaWork()) present.push_back(std::move(cuda));
  if (auto hip = hipWork()) present.push_back(std::move(hip));
  return present;
}

}  // namespace cistern::test
