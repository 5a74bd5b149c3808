// A picture of every segment and block.
#pragma once

#include "allocator/engine/engine.hpp"
#include "cistern/report.hpp"

namespace cistern {

/// CachingAllocator::snapshot, which says what it promises. Throws std::bad_alloc. Thread-safe.
Snapshot snapshotOf(Engine& engine);

}  // namespace cistern
