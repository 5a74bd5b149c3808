// The caches of some heaps, emptied and kept so: what whoever needs all of those heaps' memory, or
// looks at them as a whole, stands on.
#pragma once

#include <span>

#include "allocator/engine/heap/heap.hpp"

namespace cistern {

/// Until it goes, the owners' fast ways are closed: an owner that comes by goes to the heap's lock,
/// and waits there. Pre: the caller holds the locks of all the heaps, and does so until it goes.
class HeldCaches {
 public:
  explicit HeldCaches(std::span<Heap* const> heaps) noexcept : heaps_(heaps) { hold(); }
  explicit HeldCaches(Heap& heap) noexcept : only_(&heap), heaps_(&only_, 1) { hold(); }
  ~HeldCaches();
  /// Whether there was anything in them.
  bool hadAny() const { return any_; }
  HeldCaches(const HeldCaches&) = delete;
  HeldCaches& operator=(const HeldCaches&) = delete;

 private:
  void hold() noexcept;

  Heap* only_ = nullptr;
  bool any_ = false;
  std::span<Heap* const> heaps_;
};

/// Until it is called with false, the caches of the heap are empty, and keep nothing.
void setCachesShut(Heap& heap, bool shut) noexcept CISTERN_REQUIRES(heap.mutex());
/// The heap is another stream's. Pre: its caches are shut.
void followHeap(Heap& heap) noexcept CISTERN_REQUIRES(heap.mutex());

}  // namespace cistern
