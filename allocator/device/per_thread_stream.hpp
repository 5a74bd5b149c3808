// The handle of per-thread default streams, which is refused wherever a stream is met.
#pragma once

#include "cistern/device.hpp"

namespace cistern {

/// Throws InvalidArgument where the handle means another stream in each thread: memory in the order
/// of such a handle would be in no order.
void requireOneStream(const Device& device, Stream stream);

}  // namespace cistern
