// The real GPUs' ways to queue test work. vendor_work/ defines each once: for a build that can
// compile kernels for the vendor, and in an absent twin, returning null, for one that cannot.
#pragma once

#include <memory>

#include "tests/support/device_work.hpp"

namespace cistern::test {

/// On the device with that ordinal; null when this build has no such backend or this machine no
/// such device. Throws DeviceFailure when there is a driver that does not work.
std::unique_ptr<DeviceWork> cudaWork(int ordinal = 0);
std::unique_ptr<DeviceWork> hipWork(int ordinal = 0);

}  // namespace cistern::test
