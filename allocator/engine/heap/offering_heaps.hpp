// The heaps that may have memory for others: all but those that somebody has looked into and found
// without. They are in it again as soon as memory is freed there, or comes. So n streams that hold
// what they have are looked into n times, not n times by each.
//
// The lock is a leaf, taken under heaps' locks.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/engine/heap/heap.hpp"

namespace cistern {

/// A set of heaps by their numbers, which are given in the order in which heaps are made: a bit for
/// each. The next one is found 64 numbers at a time: 100,000 heaps are 1,563 words.
class HeapSet {
 public:
  static constexpr std::size_t kNone = SIZE_MAX;

  /// Numbers below `count` may be inserted from now on; nothing else takes host memory. Throws
  /// std::bad_alloc, changing nothing that is in it.
  void reserve(std::size_t count) {
    const std::size_t words = (count + kBits - 1) / kBits;
    if (words > words_.size()) words_.resize(2 * words);
  }
  void insert(std::size_t number) noexcept { words_[number / kBits] |= bit(number); }
  void erase(std::size_t number) noexcept { words_[number / kBits] &= ~bit(number); }
  bool contains(std::size_t number) const noexcept {
    return (words_[number / kBits] & bit(number)) != 0;
  }
  /// The least in it that is not less than `number`, or kNone.
  std::size_t next(std::size_t number) const noexcept {
    std::uint64_t from = ~std::uint64_t{0} << (number % kBits);
    for (std::size_t i = number / kBits; i < words_.size(); ++i) {
      if (const std::uint64_t found = words_[i] & from)
        return i * kBits + std::size_t(std::countr_zero(found));
      from = ~std::uint64_t{0};
    }
    return kNone;
  }
  std::size_t hostBytes() const { return words_.capacity() * sizeof(words_[0]); }

 private:
  static constexpr std::size_t kBits = 64;
  static std::uint64_t bit(std::size_t number) { return std::uint64_t{1} << (number % kBits); }

  std::vector<std::uint64_t> words_;
};

class OfferingHeaps {
 public:
  /// A heap that has just been made. Throws std::bad_alloc, changing nothing.
  void add(Heap& heap);
  /// The heap has nothing for others, or may have again. Pre: its lock is held.
  void withdraw(const Heap& heap) noexcept;
  void offer(const Heap& heap) noexcept;
  /// The first heap numbered from `number`, whose number goes there plus one; null when there is
  /// none.
  Heap* next(std::size_t& number) const noexcept;

  std::size_t hostBytes() const;
  /// Checks what is promised above; aborts if it does not hold. Pre: the locks of `heaps`, which
  /// are all, are held.
  void audit(const std::vector<Heap*>& heaps) const;

 private:
  mutable Mutex mutex_;
  std::vector<Heap*> made_ CISTERN_GUARDED_BY(mutex_);  ///< by number
  HeapSet offering_ CISTERN_GUARDED_BY(mutex_);
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
