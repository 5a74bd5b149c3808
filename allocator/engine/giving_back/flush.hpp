// Memory goes from threads' caches to their heaps, and what is due after a free. Thread-safe;
// nothing here may be called with a heap's lock held.
#pragma once

#include "allocator/engine/engine.hpp"

namespace cistern {

/// Empties the caches of all threads. True if there was anything in them. It looks only at caches
/// that may hold something.
bool flushCaches(Engine& engine) noexcept;
/// Called after each free that a heap took outside a capture: does what was found to be due, once
/// the heap's lock is given up.
void afterFree(Engine& engine, Heap& heap, Heap::Due due) noexcept;
/// A heap is at low water: its pages go home, and caches are emptied.
void atLowWater(Engine& engine, Heap& heap) noexcept;

}  // namespace cistern
