// A device in front of another: the test is called before each call that goes through, without a
// lock held, and may make calls of its own on the device behind. So what happens between two calls
// of one verb can be chosen.
#pragma once

#include <functional>

#include "tests/support/forwarding_device.hpp"

namespace cistern::test {

class InterposedDevice final : public ForwardingDevice<InterposedDevice> {
 public:
  using ForwardingDevice::ForwardingDevice;

  /// Called before each call; set it while no other thread uses the device.
  std::function<void(Call)> before;

  template <class Forward>
  auto through(Call call, Forward forward) {
    if (before) before(call);
    return forward(behind_);
  }
};

}  // namespace cistern::test
