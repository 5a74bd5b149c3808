// What a pool held at one moment, to be set back to later.
#pragma once

#include <vector>

#include "allocator/engine/caching_allocator.hpp"

namespace cistern {

struct PoolCheckpoint {
  MempoolId_t id;
  std::vector<LiveBlock> blocks;  ///< by address
};

/// What setting back has changed.
struct CheckpointDelta {
  std::vector<void*> freed;  ///< were live, and were not in the checkpoint
  std::vector<void*> made;   ///< were in the checkpoint, and were not live
};

}  // namespace cistern
