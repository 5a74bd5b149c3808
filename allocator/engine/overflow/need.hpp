// The memory of the device that a program needs.
#pragma once

#include "allocator/engine/engine.hpp"

namespace cistern {

/// CachingAllocator::takePeak. Takes the heaps' locks.
std::uint64_t takePeak(Engine& engine);

}  // namespace cistern
