// The number of devices that "auto" could have opened where it opened one.
#pragma once

#include "cistern/device.hpp"

namespace cistern {

/// The devices of that backend that this process can open; at least 1. Pre: `device` is open.
int devicesBeside(const Device& device);

}  // namespace cistern
