// A simulated device whose own host memory does not count: the driver's is not the allocator's to
// ask for.
#pragma once

#include <utility>

#include "allocator/device/sim/sim_device.hpp"
#include "tests/support/forwarding_device.hpp"
#include "tests/support/host_memory/host_memory.hpp"

namespace cistern::test {

class QuietDevice final : public ForwardingDevice<QuietDevice> {
 public:
  explicit QuietDevice(sim::SimConfig config) : ForwardingDevice(sim_), sim_(std::move(config)) {}
  sim::SimDevice& sim() { return sim_; }

  template <class Forward>
  auto through(Call, Forward forward) {
#if defined(CISTERN_COUNTS_HOST_MEMORY)
    const HostAllocationsApart apart;
#endif
    return forward(behind_);
  }

 private:
  sim::SimDevice sim_;
};

}  // namespace cistern::test
