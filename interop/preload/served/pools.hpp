// Which of the driver's stream-ordered pools Cistern stands in for: the default one of each device,
// as it is when the program has changed nothing. A pool that the program makes has properties of
// its own (who may use it, how it is shared), which Cistern's memory has not.
#pragma once

#include "interop/preload/driver/functions.hpp"

namespace cistern::preload {

/// Whether it is the default pool of the current context's device.
bool isDefaultPool(CUmemoryPool pool) noexcept;
/// Whether cudaMallocAsync in the current context takes from the default pool.
bool defaultPoolIsCurrent() noexcept;
/// The program has set the device's current pool.
void currentPoolIs(CUdevice device, CUmemoryPool pool) noexcept;

}  // namespace cistern::preload
