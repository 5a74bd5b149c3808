// What threads keep goes back to the heaps: when memory is short, and at low water. It owns
// nothing. Thread-safe; nothing here may be called with a heap's lock held.
#pragma once

#include <vector>

#include "allocator/engine/core.hpp"

namespace cistern {

class Flusher {
 public:
  explicit Flusher(Core& core) : core_(core) {}

  /// Empties the caches of all threads. True if there was anything in them. Caches that may hold
  /// something are looked at, and no others.
  bool flush() noexcept;
  /// The one epilogue of every free: what the heap has found to be due once its lock is given up.
  void afterFree(Heap& heap, Heap::Due due) noexcept;
  /// A heap is at low water: its pages go home, and caches are emptied.
  void atLowWater(Heap& heap) noexcept;

 private:
  bool flushFilled(std::vector<Heap*>& heaps) CISTERN_REQUIRES(core_.heaps_mutex);
  void flushMine() noexcept;
  void goHome(Heap& heap) noexcept;

  Core& core_;
};

}  // namespace cistern
