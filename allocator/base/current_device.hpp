// How a vendor's runtime is told of a DeviceGuard and asked for its current device; and a thread's
// current streams, where the engine looks them up.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "allocator/base/device_slots.hpp"
#include "cistern/current.hpp"

namespace cistern {

/// How a vendor's runtime is asked and told which device a thread has current.
struct DeviceSwitch {
  /// -1 when the vendor has no device here.
  int (*current)() noexcept;
  /// Makes the device current; what leave() takes to go back. Throws Error, changing nothing, when
  /// there is no such device.
  std::uintptr_t (*enter)(int ordinal);
  void (*leave)(std::uintptr_t before) noexcept;
};

/// Has `device_switch` (which must live as long as the process) follow every DeviceGuard from now
/// on. What binds a vendor's libraries does that while the program is being loaded.
void addDeviceSwitch(const DeviceSwitch& device_switch) noexcept;

namespace detail {

/// Whether another device than the first may be in use: some thread has been under a guard of one,
/// or one has a shared allocator.
inline constinit std::atomic<bool> another_device{false};

inline constinit thread_local std::array<Stream, std::size_t(kMaxDevices)> current_streams{};

}  // namespace detail

}  // namespace cistern
