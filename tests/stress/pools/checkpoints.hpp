// Checkpoints of pools, and setting pools back to them, against what the model says must change.
#pragma once

#include "tests/stress/pools/pool_worker.hpp"

namespace cistern::storm {

void takeCheckpoint(Worker& worker);
void restoreCheckpoint(Worker& worker);

/// What the pool says it holds, against the model. Pre: the caller has it alone; nothing of it is
/// in a capture or used from outside, and it has never lent.
void checkPool(World& world, PoolModel& pool);

}  // namespace cistern::storm
