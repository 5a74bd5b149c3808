// What a capture leaves to its graph.
#pragma once

#include <utility>

#include "allocator/engine/caching_allocator.hpp"
#include "pools/pools.hpp"

namespace cistern {

/// A use of the pool, and the memory in it that must stay where it is. Let go when destroyed.
class Captured {
 public:
  Captured(Pools& pools, MempoolId_t pool) : pools_(pools), pool_(pool) {}
  ~Captured();
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  MempoolId_t pool() const { return pool_; }
  /// The pool counts this as a user now.
  void counted() { counted_ = true; }
  void hold(Pins pins) { pins_ = std::move(pins); }

 private:
  Pools& pools_;
  const MempoolId_t pool_;
  bool counted_ = false;
  Pins pins_;
};

}  // namespace cistern
