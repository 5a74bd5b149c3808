// The doors of the two vendor backends: their rows in the table of backends, and the functions in
// these rows. No vendor type passes through them, so that everything above compiles the same with
// and without an SDK. In a build with the SDK, open_vendor.cpp defines each door. In one without
// it, absent_cuda.cpp or absent_hip.cpp does. Read next: alias.hpp (how one source serves both
// vendors), vendor_device.hpp.
#pragma once

#include <memory>

#include "allocator/device/backends.hpp"

namespace cistern::cuda {

extern const Backend kTableEntry;

// The functions of the entry, as Backend describes them. A build without the backend has no switch.
// In a build with it, the switch follows every DeviceGuard, also before a device is open.
Result<int> deviceCount();
Result<std::unique_ptr<Device>> open(int ordinal);
const DeviceSwitch& deviceSwitch() noexcept;

}  // namespace cistern::cuda

namespace cistern::hip {

/// As those of cistern::cuda.
extern const Backend kTableEntry;
Result<int> deviceCount();
Result<std::unique_ptr<Device>> open(int ordinal);
const DeviceSwitch& deviceSwitch() noexcept;

}  // namespace cistern::hip
