// A pool is set back to the blocks that it held at an earlier moment.
#pragma once

#include <vector>

#include "allocator/engine/engine.hpp"

namespace cistern {

/// Makes the blocks of `wanted` live in the pool, at their addresses, and no others. Work of their
/// streams from now on comes after all that was done with that memory. Throws std::bad_alloc and
/// PoolError, changing nothing. PoolError: some of the memory is no longer the pool's, that order
/// cannot be had, or a capture into the pool is under way. Also: a block that is to be made is for
/// a stream that was forgotten and not named since. Also: liveBlocks cannot have returned `wanted`.
CheckpointDelta restore(Engine& engine, Pool& pool, const std::vector<LiveBlock>& wanted);

}  // namespace cistern
