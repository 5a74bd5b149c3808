// The way to a device by name, for whoever does not care which backend it is.
#pragma once

#include <memory>
#include <string_view>

#include "allocator/device/device.hpp"

namespace cistern {

/// Opens device `ordinal` of a backend: "cuda", "hip", "sim", or "auto", which is the first of
/// CUDA, HIP and the simulated device (with its default configuration) that this machine has.
///
/// "auto" passes over a vendor without driver or device, never over one whose driver is broken.
/// Throws InvalidArgument naming the value and what is allowed for another backend or an ordinal
/// that the backend does not have; DeviceFailure when there is no driver or no device, when the
/// build lacks the backend, or when the vendor's runtime fails.
std::unique_ptr<Device> openDevice(std::string_view backend = "auto", int ordinal = 0);

}  // namespace cistern
