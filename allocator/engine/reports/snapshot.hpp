// Every segment and block, for CachingAllocator::snapshot. cistern/snapshot.hpp says what is in it.
#pragma once

#include "cistern/snapshot.hpp"

namespace cistern {

struct Core;

/// Holds all heaps still meanwhile. Throws std::bad_alloc.
Snapshot snapshotOf(Core& core);

}  // namespace cistern
