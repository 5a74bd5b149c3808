// The calls to a device, and their prices. The program waits for calls on the caller's path, and
// does not wait for calls in the background.
#pragma once

#include <cstdint>

#include "cistern/device.hpp"

namespace cistern::command {

struct DeviceBill {
  CallCounts all_calls{};
  CallCounts background_calls{};
  std::uint64_t modelled_ns = 0;  ///< of the caller's; both are 0 on a real device
  std::uint64_t modelled_background_ns = 0;

  /// On the caller's path. A call in the background that was under way at the start of the bill may
  /// be in only one of the counts. No count can be below zero.
  CallCounts callersCalls() const {
    CallCounts calls{};
    for (std::size_t i = 0; i < kCallCount; ++i) {
      if (all_calls[i] > background_calls[i]) calls[i] = all_calls[i] - background_calls[i];
    }
    return calls;
  }

  DeviceBill& operator+=(const DeviceBill& more) {
    for (std::size_t i = 0; i < kCallCount; ++i) {
      all_calls[i] += more.all_calls[i];
      background_calls[i] += more.background_calls[i];
    }
    modelled_ns += more.modelled_ns;
    modelled_background_ns += more.modelled_background_ns;
    return *this;
  }
};

/// The part of the bill that was added since it was `before`.
inline DeviceBill operator-(DeviceBill now, const DeviceBill& before) {
  for (std::size_t i = 0; i < kCallCount; ++i) {
    now.all_calls[i] -= before.all_calls[i];
    now.background_calls[i] -= before.background_calls[i];
  }
  now.modelled_ns -= before.modelled_ns;
  now.modelled_background_ns -= before.modelled_background_ns;
  return now;
}

/// All that the device was asked for so far.
inline DeviceBill billOf(const Device& device) {
  return {device.callCounts(), device.backgroundCallCounts(), device.modelledNanoseconds(),
          device.modelledBackgroundNanoseconds()};
}

/// All kinds together.
inline std::uint64_t totalOf(const CallCounts& calls) {
  std::uint64_t total = 0;
  for (const std::uint64_t count : calls) total += count;
  return total;
}

}  // namespace cistern::command
