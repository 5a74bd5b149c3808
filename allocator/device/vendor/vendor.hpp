// The doors of the two vendor backends. No vendor type passes through them, so that everything
// above compiles the same with and without an SDK. In a build with the SDK, open_vendor.cpp defines
// each door. In one without it, absent_cuda.cpp or absent_hip.cpp does. Read next: alias.hpp (how
// one source serves both vendors), vendor_device.hpp.
#pragma once

#include <memory>

#include "cistern/device.hpp"

namespace cistern {
struct DeviceSwitch;
}

namespace cistern::cuda {

/// Whether this build has the backend, whatever the machine.
bool compiledIn();

/// How many devices the driver shows to this process: at least 1. Fails with kNoDevice without a
/// driver or a device. Fails with kNotSupported when the build has no such backend. Fails with the
/// vendor's own failure when the driver does not work.
Result<int> deviceCount();

/// The device with that ordinal, ready for calls. Fails like deviceCount, and with kNoDevice when
/// the ordinal is not in [0, deviceCount()).
Result<std::unique_ptr<Device>> open(int ordinal);

/// The runtime's functions to read and set a thread's current device. It follows every DeviceGuard
/// of a program that contains this backend.
const DeviceSwitch& deviceSwitch() noexcept;

}  // namespace cistern::cuda

namespace cistern::hip {

/// As those of cistern::cuda.
bool compiledIn();
Result<int> deviceCount();
Result<std::unique_ptr<Device>> open(int ordinal);
const DeviceSwitch& deviceSwitch() noexcept;

}  // namespace cistern::hip
