// Minting names for pools. A name is no pool yet: whoever uses it first makes one.
#pragma once

#include "allocator/base/types.hpp"

namespace cistern {

/// A name that was never given out in this process: {0, uid} for a user, {uuid, 0} for a capture
/// that was given no pool. Both count from 1. (PyTorch's graph_pool_handle.) Thread-safe.
MempoolId_t graphPoolHandle(bool is_user_created = true) noexcept;

}  // namespace cistern
