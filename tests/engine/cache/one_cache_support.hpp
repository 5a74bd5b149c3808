// What the tests of one cache share: a cache of the calling thread in front of a heap, with no
// table around it.
#pragma once

#include "allocator/engine/paths/fast_path.hpp"
#include "tests/engine/parts_support.hpp"

namespace cistern::test {

struct OneCache : Parts {
  explicit OneCache(std::int64_t budget = 1 << 30, std::int64_t small = 64 * kKiB,
                    std::int64_t large = 8 * kMiB)
      : ground{1, small, large, budget, tick} {
    const MutexLock lock(heap.mutex());
    cache.open(*counters);
    heap.addCache(cache);
  }
  ~OneCache() {
    const MutexLock lock(heap.mutex());
    if (cache.isOpen()) cache.close();
    heap.audit();
  }

  /// A block of the cache that the program has.
  Block& held(std::uint64_t bytes) {
    Block& block = allocate(heap, bytes);
    const MutexLock lock(heap.mutex());
    cache.blocks().own(block);
    return block;
  }
  /// Gives it back under the heap's lock.
  bool accept(Block& block) {
    const MutexLock lock(heap.mutex());
    const bool kept = cache.accept(block, WhoFreed(nullptr, 0));
    cache.blocks().audit();
    return kept;
  }
  /// The same; what the cache does not keep goes to the heap.
  void free(Block& block) {
    if (accept(block)) return;
    const MutexLock lock(heap.mutex());
    ownership::leaveToHeap(block, heap.stream());
    heap.release(block, tick);
  }
  template <class Sizes = fast_path::DirectSizes>
  Block* take(std::uint64_t bytes) {
    return fast_path::allocate<Sizes>(
        cache, fast_path::Known{}, bytes, cache.stream(),
        [&](void* pointer) { return cache.recents().find(toAddress(pointer)); },
        [] { return static_cast<Block*>(nullptr); });
  }
  Block* takeAny(std::uint64_t bytes) { return take<fast_path::AllSizes>(bytes); }
  template <class Sizes = fast_path::DirectSizes>
  bool give(Block& block) {
    return fast_path::free<Sizes>(
        cache, fast_path::Known{}, fast_path::Recent{toAddress(cache.handOut(block))}, nullptr,
        [] { return true; }, [](Block*) { return false; });
  }
  bool giveAny(Block& block) { return give<fast_path::AllSizes>(block); }
  /// By another thread, or as if.
  RemoteFrees::Answer freeRemotely(Block& block) {
    return cache.freeRemotely(block, cache.holder(), WhoFreed(nullptr, 9));
  }
  std::uint64_t busyBytes() {
    const MutexLock lock(heap.mutex());
    return heap.busyBytes();
  }
  std::int64_t current(Stat stat) { return totals.read().all[std::size_t(stat)].current; }
  static ownership::Where whereIs(const Block& block) {
    return ownership::whereIs(ownership::load(block));
  }

  std::atomic<std::uint64_t> tick{1};
  CacheGround ground;
  ThreadCounters* const counters = totals.join();
  Heap heap{pool, stream(), pool.heapOptions(), totals};
  ThreadCache cache{1, 0, heap, 5, ground};
};

}  // namespace cistern::test
