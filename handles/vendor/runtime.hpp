// The part of a vendor's runtime that the libraries' files need, as a table of functions. It covers
// a thread's current device, and permission to create a handle during a capture. No vendor type
// passes through, so tests put a table of their own in its place.
#pragma once

#include <cstdint>

#include "allocator/base/current_device.hpp"

namespace cistern::handles {

struct VendorRuntime {
  DeviceSwitch devices;
  const char* no_device_text;
  /// From here to restoreCapture this thread's calls do not break a capture that is active.
  int (*relaxCapture)() noexcept;
  void (*restoreCapture)(int before) noexcept;
  /// The first number of the device's compute capability; 0 when the query fails.
  int (*computeMajor)(int ordinal) noexcept;
};

/// While it lives, `device` is the thread's current one and the library may allocate, also during
/// a capture. Throws Error when there is no such device.
class CreationScope {
 public:
  CreationScope(const VendorRuntime& runtime, int device);
  ~CreationScope();
  CreationScope(const CreationScope&) = delete;
  CreationScope& operator=(const CreationScope&) = delete;

 private:
  const VendorRuntime& runtime_;
  DeviceGuard device_;
  int capture_before_;
};

}  // namespace cistern::handles

namespace cistern::cuda {
const handles::VendorRuntime& runtime();
}
namespace cistern::hip {
const handles::VendorRuntime& runtime();
}
