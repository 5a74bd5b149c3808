// The handle of per-thread default streams. Every verb that takes a stream refuses it.
#pragma once

#include "cistern/device.hpp"

namespace cistern {

/// Throws InvalidArgument if the handle means another stream in each thread. Memory in the order of
/// such a handle would be in no order.
void requireOneStream(const Device& device, Stream stream);

}  // namespace cistern
