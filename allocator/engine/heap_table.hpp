// All heaps of an allocator. From a stream to its heap in the default pool without a lock: an
// insert-only hash table, in front of which each thread remembers the heaps it used last. Other
// pools know their own heaps (pool.hpp); when such a pool is gone its heaps are parked here for the
// next. No heap is deleted before the table.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/engine/heap.hpp"

namespace cistern {

class HeapTable {
 public:
  HeapTable(Pool& default_pool, std::size_t free_log);
  HeapTable(const HeapTable&) = delete;
  HeapTable& operator=(const HeapTable&) = delete;

  /// The stream's heap in the default pool, or null when it has none yet, or is gone. Lock-free.
  Heap* find(Stream stream) const noexcept;
  /// The same, made if there is none. Throws std::bad_alloc, changing nothing.
  Heap& findOrMake(Stream stream);
  /// The stream's heap in `pool`, which is not the default one, made if there is none. Throws
  /// std::bad_alloc, changing nothing.
  Heap& findOrMake(Pool& pool, Stream stream);
  /// From now on the stream's heaps, in all pools, are those of a stream that is gone, or no more.
  /// Pre: no verb names the stream meanwhile.
  void setGone(Stream stream, bool gone) noexcept;
  /// All heaps in the order they were made, parked ones too. A heap made meanwhile may be missing.
  std::vector<Heap*> all() const;
  /// The same for whoever asks again and again: `heaps` is brought up to date, which costs nothing
  /// while there are the same as when `changes` was last set here. It is 0 at first. Throws
  /// std::bad_alloc.
  void refresh(std::vector<Heap*>& heaps, std::uint64_t& changes) const;
  /// The heap leaves its pool and waits for another. False when it is being asked about at the
  /// moment. Pre: it holds no memory, and no queued work uses what it ever held.
  bool park(Heap& heap) noexcept;

 private:
  struct Slots {
    explicit Slots(std::size_t size) : heaps(size) {}
    std::vector<std::atomic<Heap*>> heaps;  ///< size is a power of two, at most half full
  };
  struct Remembered {
    std::uint64_t answers = 0;  ///< of which table, and when; numbers are never used twice
    Stream stream;
    Heap* heap = nullptr;
  };

  static std::size_t hashOf(Stream stream) {
    return std::size_t((stream.raw * 0x9E3779B97F4A7C15u) >> 32);
  }
  static void place(Slots& slots, Heap* heap) noexcept;
  void growFor(std::size_t heaps) CISTERN_REQUIRES(mutex_);
  Heap& make(Pool& pool, Stream stream) CISTERN_REQUIRES(mutex_);
  Heap* takeParked(Pool& pool, Stream stream) noexcept CISTERN_REQUIRES(mutex_);

  Pool& default_pool_;
  const std::size_t free_log_;
  /// Of the answers that threads may remember. A new one makes all of them look again.
  std::atomic<std::uint64_t> answers_;
  Pool nowhere_;  ///< where parked heaps are
  std::atomic<Slots*> slots_;
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Slots>> generations_
      CISTERN_GUARDED_BY(mutex_);  ///< readers' old ones
  std::vector<std::unique_ptr<Heap>> heaps_ CISTERN_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> changes_{1};                 ///< of heaps_
  std::size_t placed_ CISTERN_GUARDED_BY(mutex_) = 0;     ///< heaps in the slots
  std::vector<Heap*> parked_ CISTERN_GUARDED_BY(mutex_);  ///< has room for all there are

  static thread_local Remembered remembered_[4];
};

}  // namespace cistern
