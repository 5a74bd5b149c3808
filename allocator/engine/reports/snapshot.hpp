// Every segment and block, for CachingAllocator::snapshot. cistern/statistics.hpp says what is in
// it.
#pragma once

#include "cistern/statistics.hpp"

namespace cistern {

struct Core;

/// Holds all heaps still meanwhile. Throws std::bad_alloc.
Snapshot snapshotOf(Core& core);

}  // namespace cistern
