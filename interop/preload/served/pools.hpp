// Which of the driver's stream-ordered pools Cistern stands in for: the default one of each device,
// as it is when the program has changed nothing. A pool that the program makes has properties of
// its own (who may use it, how it is shared), which Cistern's memory has not.
#pragma once

#include "interop/preload/driver/vendor.hpp"

namespace cistern::preload::GPU_NAMESPACE {

/// Whether it is the default pool of the current context's device.
bool isDefaultPool(PoolHandle pool) noexcept;
/// Whether cudaMallocAsync in the current context takes from the default pool.
bool defaultPoolIsCurrent() noexcept;
/// The program has set the device's current pool.
void currentPoolIs(int device, PoolHandle pool) noexcept;

}  // namespace cistern::preload::GPU_NAMESPACE
