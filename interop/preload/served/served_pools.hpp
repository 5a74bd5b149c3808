// The driver's stream-ordered pools that Cistern stands in for: the default one of each device,
// while the program has changed nothing of it. A pool that the program makes has properties of its
// own (who may use it, how it is shared), which Cistern's memory has not.
#pragma once

#include <cstddef>
#include <optional>

#include "interop/preload/driver/driver.hpp"

namespace cistern::preload::GPU_NAMESPACE {

/// Whether it is the default pool of the current context's device, which Cistern stands in for.
bool isDefaultPool(PoolHandle pool) noexcept;
/// Whether cudaMallocAsync in the current context takes from that pool.
bool defaultPoolIsCurrent() noexcept;
/// The program has set the device's current pool. From now on Cistern asks the driver which pool is
/// current: a pool that is destroyed makes the default one current again.
void currentPoolChanges(int device) noexcept;
/// The program has said which devices may use the pool. A default pool that others than its own
/// device may use is the driver's from now on.
void accessChanges(PoolHandle pool, const PoolAccess* access, std::size_t count) noexcept;
/// The device whose default pool it is; nothing for any other pool.
std::optional<int> deviceOfDefault(PoolHandle pool) noexcept;

}  // namespace cistern::preload::GPU_NAMESPACE
