// All caches of one allocator, and which of them are the calling thread's.
//
// A cache belongs to its heap for as long as the allocator lives. A thread opens one for each
// stream that it uses. It takes one that an ended thread has left, if there is any. It leaves its
// caches behind when it ends. So there are never more than there were threads at once, times the
// streams they used.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "allocator/base/mutex.hpp"
#include "allocator/engine/cache/thread_cache.hpp"
#include "cistern/types.hpp"

namespace cistern {

class CacheTable {
 public:
  /// The bytes that the stacks of one cache, its last block, and the stacks of all may hold. There
  /// are no caches if the first is 0.
  struct Limits {
    std::uint64_t stacks = 0, last = 0, all = 0;
  };

  CacheTable(Limits limits, const std::atomic<std::uint64_t>& tick, Totals& totals);
  /// Pre: no other thread uses the allocator any more, except that it may be ending.
  ~CacheTable();

  /// The cache that the calling thread used last; it may be another table's, or nobody's.
  static ThreadCache& last() noexcept { return *seen_.last; }
  bool has(const ThreadCache& cache) const noexcept { return cache.table() == number_; }
  /// Whether the cache is this table's, and no router needs to look at requests.
  bool allowsHits(const ThreadCache& cache) const noexcept {
    return cache.table() == ground_.allowing_hits.load(std::memory_order_relaxed);
  }
  void setRouted(bool routed) noexcept {
    ground_.allowing_hits.store(routed ? kNone : number_, std::memory_order_relaxed);
  }
  /// The handle that C programs have of the allocator; 0 for none. Its hits look at that alone
  /// (fast_path.hpp).
  void setHandle(std::uint64_t handle) noexcept;
  /// The calling thread's caches, of all tables, are used by no hit until they are looked up again.
  static void forgetSeen() noexcept { seen_ = {&nobodys_, {}}; }
  /// The calling thread's cache for the default pool's memory of a stream. It becomes the one that
  /// was used last. Null when the thread has none, or has come by many other streams since.
  ThreadCache* mine(Stream stream) const noexcept {
    if (seen_.last->stream() == stream && has(*seen_.last)) return seen_.last;
    ThreadCache* const cache = seen_.caches[seenAt(stream)];
    if (cache == nullptr || cache->stream() != stream || cache->table() != number_) return nullptr;
    return seen_.last = cache;
  }
  /// The calling thread's cache for the heap's memory; opens one if the thread has none. Null when
  /// there are to be no caches, or the host is short of memory. Pre: the heap is the default
  /// pool's, and the caller holds no heap's lock.
  ThreadCache* open(Heap& heap) noexcept;
  /// The cache that the holder of a block names; null for none. Pre: isOwned(holder).
  ThreadCache* owner(std::uint32_t holder) const noexcept { return at(ownership::ownerOf(holder)); }
  /// Calls visit(ThreadCache&) for those that may hold something. From now on they count as such
  /// only if more comes, or visit() lists them again.
  template <class Visit>
  void takeFilled(Visit visit) {
    ThreadCache* next = ground_.filled.exchange(nullptr, std::memory_order_acq_rel);
    while (ThreadCache* const one = next) {
      next = one->unlist();
      visit(*one);
    }
  }
  std::size_t hostBytes() const;

 private:
  /// The caches that a thread remembers. Each may be another table's by now, but is a cache still.
  struct Seen {
    ThreadCache* last;
    std::array<ThreadCache*, 16> caches;
  };
  static constexpr std::size_t kChunk = 256;
  static constexpr std::size_t kMostCaches = std::size_t{1} << 20;
  static_assert(kMostCaches < std::size_t{1} << ownership::kOwnerBits);
  using Chunk = std::array<std::atomic<ThreadCache*>, kChunk>;

  /// The cache of that number; null for none.
  ThreadCache* at(std::size_t index) const noexcept {
    if (index >= kMostCaches) return nullptr;
    const Chunk* const chunk = chunks_[index / kChunk].load(std::memory_order_acquire);
    return chunk ? (*chunk)[index % kChunk].load(std::memory_order_acquire) : nullptr;
  }

  static std::size_t seenAt(Stream stream) {
    return std::size_t((stream.raw * 0x9E3779B97F4A7C15u) >> 60);
  }
  static ThreadCache* findOrAdopt(Heap& heap, ThreadCounters& counters) noexcept;
  ThreadCache& make(Heap& heap, ThreadCounters& counters);

  Totals& totals_;
  const std::uint64_t number_;  ///< never used twice; from 1
  static constexpr std::uint64_t kNone = UINT64_MAX;
  CacheGround ground_;
  mutable Mutex mutex_{LockRank::kCacheTable};
  std::uint64_t handle_ CISTERN_GUARDED_BY(mutex_) = 0;
  std::size_t count_ CISTERN_GUARDED_BY(mutex_) = 0;  ///< of caches, which are numbered from 0
  std::array<std::atomic<Chunk*>, kMostCaches / kChunk> chunks_{};

  /// The cache that is remembered in place of none: it is of no table.
  static ThreadCache nobodys_;
  inline static constinit thread_local Seen seen_{&nobodys_, {}};
};

}  // namespace cistern
