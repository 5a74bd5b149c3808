// A thread's current device and current stream, so that not every call has to name them.
//
// The stream is Cistern's own: one for each thread and device, the runtime's default stream until a
// StreamGuard sets another. The device is the vendor's: the one that cudaSetDevice has set. Under a
// DeviceGuard it is the guard's, found without a call to the vendor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "cistern/types.hpp"

namespace cistern {

struct DeviceSwitch;

inline constexpr int kMaxDeviceSwitches = 4;  // more than there are vendors

/// The thread's device: that of the innermost DeviceGuard, else the vendor's current one (of the
/// first vendor that has devices here), else 0.
CISTERN_API int currentDevice() noexcept;

/// The thread's stream on a device. Throws InvalidArgument for an ordinal out of range.
CISTERN_API Stream currentStream(int device);
inline Stream currentStream() { return currentStream(currentDevice()); }

/// While it lives, `stream` is the thread's current stream on `device`. Guards of a thread end in
/// the reverse order of their making.
class CISTERN_API StreamGuard {
 public:
  explicit StreamGuard(Stream stream, int device = currentDevice());
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  std::size_t device_;
  Stream before_;
};

/// While it lives, `device` is the thread's current device, for Cistern and for each vendor that
/// has devices here. Do not call cudaSetDevice under it. Throws InvalidArgument for an ordinal out
/// of range, Error for a device that a vendor does not have; then nothing was changed.
class CISTERN_API DeviceGuard {
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
