// What a capture leaves to its graph.
#pragma once

#include <utility>

#include "allocator/engine/caching_allocator.hpp"
#include "pools/pools.hpp"

namespace cistern {

/// A use of the pool, and the memory in it that must stay where it is. Let go when destroyed.
class Captured {
 public:
  Captured(Pools& pools, MempoolId_t pool, Pins pins)
      : pools_(pools), pool_(pool), pins_(std::move(pins)) {}
  ~Captured();
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  MempoolId_t pool() const { return pool_; }

 private:
  Pools& pools_;
  const MempoolId_t pool_;
  Pins pins_;
};

}  // namespace cistern
