// A heap's identity: which heap it is, whose it is, and its lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/base/mutex.hpp"
#include "allocator/engine/ground/heap_segment.hpp"
#include "allocator/engine/ground/ownership.hpp"

namespace cistern {

class Heap;
class Pool;

/// A board where a heap says whether it may have memory for others. HeapTable
/// (core/heap_table.hpp) is one.
class OfferBoard {
 public:
  /// Whether the heap may have something for others. Pre: its lock is held.
  virtual void setOffering(Heap& heap, bool offers) noexcept = 0;

 protected:
  ~OfferBoard() = default;
};

/// Stream and pool change neither while the heap holds memory, nor while some of it is on its way
/// to the device. Anyone may ask at any time. The answer may be outdated a moment later, and code
/// that acts on it asks again under the lock. The Pool reference is always safe to read: records
/// are complete when published, and not deleted before the allocator.
class HeapIdentity {
 public:
  HeapIdentity(Pool& pool, Stream stream, bool on_pages, bool overflow)
      : pool_(&pool), stream_(stream), on_pages_(on_pages), overflow_(overflow) {}

  /// The stream of a parked heap (core/heap_table.hpp). It is no stream's name: reports leave it
  /// out.
  static constexpr Stream kNobodys{UINTPTR_MAX};

  Stream stream() const { return stream_.load(std::memory_order_relaxed); }
  /// The heap only names it: what the heap needs of its pool is in HeapOptions.
  Pool& pool() const { return *pool_.load(std::memory_order_acquire); }
  /// Whether the stream has been forgotten (known_streams.hpp sets it). Then it is not asked, and
  /// look-ups for requests pass over the heap.
  bool forgotten() const { return forgotten_.load(std::memory_order_acquire); }
  void setForgotten(bool forgotten) { forgotten_.store(forgotten, std::memory_order_release); }
  /// Whether requests of that stream are for this heap, which had it a moment ago. Reads
  /// `forgotten_` first: become() writes the stream before it clears `forgotten_`.
  bool isFor(Stream s) const { return !forgotten() && stream() == s; }
  /// Whether its memory is pages, rather than segments. Changes at most once, before the heap has
  /// ever had memory: Heap::leavePages.
  bool onPages() const { return on_pages_.load(std::memory_order_relaxed); }
  /// Whether it lies beside the stream's heap in that pool, and holds what the device had no room
  /// for, in pages of host memory. Constant.
  bool overflow() const { return overflow_; }
  /// How many streams and pools the heap has belonged to before. Notes stored under number() carry
  /// it, so that stale ones are recognised. Changes while the heap holds nothing.
  std::uint32_t incarnation() const { return incarnation_.load(std::memory_order_relaxed); }
  /// The stream that a block in use was allocated for.
  Stream streamOf(const Block& block) const {
    return ownership::isOwned(ownership::load(block)) ? stream() : block.use.stream;
  }
  Mutex& mutex() const CISTERN_TSA(lock_returned(mutex_)) { return mutex_; }

  /// How many heaps were made before it.
  std::size_t number() const { return number_; }
  /// Pre: nobody else sees the heap yet. A heap that has joined no board offers nothing.
  void join(OfferBoard& board, std::size_t number) { board_ = &board, number_ = number; }

 protected:
  /// The heap is that stream's from now on, in a pool with the same backing.
  void become(Pool& pool, Stream stream) noexcept {
    pool_.store(&pool, std::memory_order_release);
    stream_.store(stream, std::memory_order_relaxed);
    incarnation_.fetch_add(1, std::memory_order_relaxed);
    setForgotten(false);
  }
  void leavePages() noexcept { on_pages_.store(false, std::memory_order_relaxed); }
  OfferBoard* board() const { return board_; }

 private:
  std::atomic<Pool*> pool_;
  std::atomic<Stream> stream_;
  std::atomic<bool> forgotten_{false};
  std::atomic<bool> on_pages_;
  const bool overflow_;
  std::atomic<std::uint32_t> incarnation_{0};
  mutable Mutex mutex_{LockRank::kHeap};
  std::size_t number_ = 0;
  OfferBoard* board_ = nullptr;
};

}  // namespace cistern
