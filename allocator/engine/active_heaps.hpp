// Which heaps have to be looked at. A settlement needs the counts of all heaps, and a miss what any
// of them has to give; neither may take longer because the program has many streams.
//
// Where there are more than a few, a heap that several settlements in turn have found unchanged,
// with nothing in its caches, rests: its counts are added to those of all that rest, its ceilings
// are where it is, and its caches are shut. Whatever changes a heap happens under its lock, and
// what does so first wakes it: its counts are taken out again before they change. So
//
//   counts of all heaps == those of the active ones + resting()
//
// at every moment at which the locks of all active heaps are held. A settlement costs as much as
// there are active heaps, and each change of a heap pays for a bounded number of looks at it.
//
// Apart from that there is a set of the heaps that may have memory for others: all that are active,
// and those that had some when they went to rest; but for those that somebody has looked into and
// found without. They are in it again as soon as memory is freed there, or comes. So n streams that
// hold what they have are looked into n times, not n times by each.
//
// The lock is a leaf, taken under heaps' locks.
#pragma once

#include <cstddef>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/engine/heap_set.hpp"
#include "allocator/engine/statistics.hpp"

namespace cistern {

class Heap;

class ActiveHeaps {
 public:
  /// What all heaps that rest have together.
  struct Resting {
    HeapCounters counters;
    std::size_t heaps = 0;
    std::size_t host_bytes = 0;
  };

  /// As long as no more are active, none goes to rest: it would only have to be woken.
  static constexpr std::size_t kFew = 8;

  ActiveHeaps() = default;
  ActiveHeaps(const ActiveHeaps&) = delete;
  ActiveHeaps& operator=(const ActiveHeaps&) = delete;

  /// A heap that has just been made, and is active. Throws std::bad_alloc, changing nothing.
  void add(Heap& heap);

  /// Pre: the heap's lock is held, and it is about to change.
  void wake(Heap& heap) noexcept;
  /// Pre: the heap's lock is held, its caches are held still, its counts are up to date, and nobody
  /// else does so at the same time (CachingAllocator::settle_mutex_).
  void rest(Heap& heap) noexcept;

  /// The heap has nothing for others, or may have again. Pre: its lock is held.
  void withdraw(const Heap& heap) noexcept;
  void offer(const Heap& heap) noexcept;

  /// Appends the active heaps that `held` lacks, as far as it has room for them. Pre: it was empty,
  /// or filled by this, and no heap has gone to rest since. False: there are none, and then
  /// `resting` is what the others have.
  bool appendNew(std::vector<Heap*>& held, Resting& resting) const noexcept;
  /// The active heaps, in the order in which they were made. Throws std::bad_alloc.
  std::vector<Heap*> all() const;
  /// For how many heaps there should be room. More may be made meanwhile.
  std::size_t count() const;

  /// The first heap numbered from `number` that may have memory for others, whose number goes
  /// there plus one; null when there is none.
  Heap* nextOffering(std::size_t& number) const noexcept;

  std::size_t hostBytes() const;
  /// Checks what is promised above; aborts if it does not hold. Pre: the locks of `heaps`, which
  /// are all, are held, and their counts are up to date.
  void audit(const std::vector<Heap*>& heaps) const;

 private:
  mutable Mutex mutex_;
  std::vector<Heap*> made_ CISTERN_GUARDED_BY(mutex_);    ///< by number
  std::vector<Heap*> active_ CISTERN_GUARDED_BY(mutex_);  ///< has room for all
  HeapSet offering_ CISTERN_GUARDED_BY(mutex_);
  Resting resting_ CISTERN_GUARDED_BY(mutex_);
};

}  // namespace cistern
