// The memory of the device that a step needs, and that there is for it.
#pragma once

#include "allocator/engine/engine.hpp"

namespace cistern {

/// CachingAllocator::takePeak, for that reader. Takes the heaps' locks.
std::uint64_t takePeak(Engine& engine, StatSums::Reader reader);

/// The bytes that the allocator may have of the device: what it has reserved, and what its limit
/// and the device leave. Asks the device.
std::uint64_t capacityOf(Engine& engine);

}  // namespace cistern
