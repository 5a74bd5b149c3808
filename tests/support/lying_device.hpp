// A device in front of another whose driver has a fault: what it returns for memory is no memory.
#pragma once

#include <optional>
#include <type_traits>

#include "tests/support/forwarding_device.hpp"

namespace cistern::test {

class LyingDevice final : public ForwardingDevice<LyingDevice> {
 public:
  using ForwardingDevice::ForwardingDevice;

  Call call = Call::kMalloc;       ///< the one that it lies in
  std::optional<Address> instead;  ///< what that returns
  int taken_back = 0;              ///< how many frees have named it

  template <class Forward>
  auto through(Call made, Forward forward) {
    using Answer = decltype(forward(behind_));
    if (!instead) return forward(behind_);
    if constexpr (std::is_same_v<Answer, Result<Address>>) {
      if (made == call) return Answer(*instead);
    } else if constexpr (std::is_same_v<Answer, Result<void*>>) {
      if (made == call) return Answer(toPointer(*instead));
    } else if constexpr (std::is_same_v<Answer, Status>) {
      if (made == Call::kFree || made == Call::kFreeReservation || made == Call::kHostFree) {
        ++taken_back;
        return Answer();
      }
    }
    return forward(behind_);
  }
};

}  // namespace cistern::test
