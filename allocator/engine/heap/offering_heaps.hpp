// The heaps that may have memory for others: all but those that somebody has looked into and found
// without. They are in it again as soon as memory is freed there, or comes. So n streams that hold
// what they have are looked into n times, not n times by each.
//
// The lock is a leaf, taken under heaps' locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/engine/heap/heap.hpp"

namespace cistern {

class OfferingHeaps {
 public:
  /// A heap that has just been made. Throws std::bad_alloc, changing nothing.
  void add(Heap& heap);
  /// Whether the heap may have something for others. Pre: its lock is held.
  void set(const Heap& heap, bool offers) noexcept {
    const MutexLock lock(mutex_);
    offering_[heap.number()] = std::uint8_t(offers);
  }
  /// The first heap numbered from `number`, whose number goes there plus one; null when there is
  /// none.
  Heap* next(std::size_t& number) const noexcept;

  std::size_t hostBytes() const {
    const MutexLock lock(mutex_);
    return made_.capacity() * sizeof(Heap*) + offering_.capacity();
  }
  /// Checks what is promised above; aborts if it does not hold. Pre: the locks of `heaps`, which
  /// are all, are held.
  void audit(const std::vector<Heap*>& heaps) const;

 private:
  mutable Mutex mutex_;
  // Both by number.
  std::vector<Heap*> made_ CISTERN_GUARDED_BY(mutex_);
  std::vector<std::uint8_t> offering_ CISTERN_GUARDED_BY(mutex_);  ///< 1: it may have something
};

/// The heap has no pages, or segment, for other heaps: nobody looks there until memory becomes
/// free, or comes. Pre: so it is, but for what lies aside and what the index has left out, which
/// this looks at.
void withdraw(Heap& heap) noexcept CISTERN_REQUIRES(heap.mutex());
/// The same if so it is.
void withdrawIfEmpty(Heap& heap) noexcept CISTERN_REQUIRES(heap.mutex());
/// Memory becomes free there, or comes.
void offerAgain(Heap& heap) noexcept CISTERN_REQUIRES(heap.mutex());

}  // namespace cistern
