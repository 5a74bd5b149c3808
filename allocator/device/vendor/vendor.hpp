// The doors of the two vendor backends. No vendor type passes through them, so that everything
// above compiles the same with and without an SDK. Each door is defined by open_vendor.cpp in a
// build that has the SDK, and by absent_cuda.cpp or absent_hip.cpp in one that does not.
// Read next: alias.hpp (how one source serves both vendors), vendor_device.hpp.
#pragma once

#include <memory>

#include "cistern/device.hpp"

namespace cistern {
struct DeviceSwitch;
}

namespace cistern::cuda {

/// Whether this build has the backend; says nothing about the machine.
bool compiledIn();

/// How many devices the driver shows to this process: at least 1. kNoDevice without a driver or a
/// device, kNotSupported when the build has no such backend, the vendor's own failure when there is
/// a driver that does not work.
Result<int> deviceCount();

/// The device with that ordinal, ready for calls. Fails like deviceCount, and with kNoDevice when
/// the ordinal is not in [0, deviceCount()).
Result<std::unique_ptr<Device>> open(int ordinal);

/// How the runtime is asked and told which device a thread has current. It follows every
/// DeviceGuard of a program in which this backend is.
const DeviceSwitch& deviceSwitch() noexcept;

}  // namespace cistern::cuda

namespace cistern::hip {

/// As those of cistern::cuda.
bool compiledIn();
Result<int> deviceCount();
Result<std::unique_ptr<Device>> open(int ordinal);
const DeviceSwitch& deviceSwitch() noexcept;

}  // namespace cistern::hip
