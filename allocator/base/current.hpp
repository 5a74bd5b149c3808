// Which device and which stream a thread works on now, so that not every call has to say so.
//
// The stream is Cistern's own: one for each thread and device, the runtime's default stream until a
// StreamGuard says otherwise. The device is the vendor's: what cudaSetDevice has set counts. Under
// a DeviceGuard it is the guard's, and nobody has to be asked.
#pragma once

#include <array>
#include <cstdint>

#include "allocator/base/device_slots.hpp"
#include "allocator/base/types.hpp"

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

inline constexpr int kMaxDeviceSwitches = 4;  // more than there are vendors

/// Has `device_switch` (which must live as long as the process) follow every DeviceGuard from now
/// on. What binds a vendor's libraries does that while the program is being loaded.
void addDeviceSwitch(const DeviceSwitch& device_switch) noexcept;

namespace detail {

inline constinit thread_local int chosen_device = -1;  // -1: no guard
inline constinit thread_local std::array<Stream, std::size_t(kMaxDevices)> current_streams{};

int vendorDevice() noexcept;

}  // namespace detail

/// The thread's device: that of the innermost DeviceGuard, else the vendor's current one (of the
/// first vendor that has devices here), else 0.
inline int currentDevice() noexcept {
  const int chosen = detail::chosen_device;
  return chosen >= 0 ? chosen : detail::vendorDevice();
}

/// The thread's stream on a device. Throws InvalidArgument for an ordinal out of range.
inline Stream currentStream(int device) { return detail::current_streams[ordinalIndex(device)]; }
inline Stream currentStream() { return currentStream(currentDevice()); }

/// While it lives, `stream` is the thread's current stream on `device`. Guards of a thread end in
/// the reverse order of their making.
class StreamGuard {
 public:
  explicit StreamGuard(Stream stream, int device = currentDevice())
      : device_(ordinalIndex(device)), before_(detail::current_streams[device_]) {
    detail::current_streams[device_] = stream;
  }
  ~StreamGuard() { detail::current_streams[device_] = before_; }
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  std::size_t device_;
  Stream before_;
};

/// While it lives, `device` is the thread's current device, for Cistern and for each vendor that
/// has devices here. Do not call cudaSetDevice under it. Throws InvalidArgument for an ordinal out
/// of range, Error for a device that a vendor does not have; then nothing was changed.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  void leaveAll() noexcept;

  struct Entered {
    const DeviceSwitch* vendor;
    std::uintptr_t before;
  };
  std::array<Entered, std::size_t(kMaxDeviceSwitches)> entered_{};
  std::size_t count_ = 0;
  int chosen_before_;
};

}  // namespace cistern
