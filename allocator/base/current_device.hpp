// The link from a DeviceGuard to a vendor's runtime and its current device. Also a thread's current
// streams, where the engine looks them up.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "allocator/base/device_slots.hpp"
#include "cistern/current.hpp"

namespace cistern {

/// A vendor's functions to read and set a thread's current device.
struct DeviceSwitch {
  /// -1 when the vendor has no device here.
  int (*current)() noexcept;
  /// Makes the device current; returns the value that leave() takes to go back. Throws Error,
  /// changing nothing, when there is no such device.
  std::uintptr_t (*enter)(int ordinal);
  void (*leave)(std::uintptr_t before) noexcept;
};

/// From now on `device_switch` (which must live as long as the process) follows every DeviceGuard.
/// The code that binds a vendor's libraries calls this while the program is being loaded.
void addDeviceSwitch(const DeviceSwitch& device_switch) noexcept;

namespace detail {

/// Whether another device than the first may be in use: some thread has been under a guard of one,
/// or one has a shared allocator.
inline constinit std::atomic<bool> another_device{false};

inline constinit thread_local std::array<Stream, std::size_t(kMaxDevices)> current_streams{};

}  // namespace detail

}  // namespace cistern
