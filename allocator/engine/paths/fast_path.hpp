// The usual case: the calling thread has a block of that size in its cache, and has room for one
// that it frees. It takes no lock and no locked instruction, and makes no device call. It allocates
// nothing on the host. It reads two words that other threads write, both seldom: whether its biased
// lock is revoked, and whether a router is set. Everything else is in slow_path.hpp. Read with:
// cache/thread_cache.hpp. A test keeps the number of instructions that it takes.
//
// The functions are inline, for the doors that a program comes in by. These are the verbs of
// CachingAllocator, the C API's calls of the same names, and the preload library's hooks. A door
// defines how it knows that the cache is the allocator's:
//
//   allowsHit         a request may be served from this cache
//   has               a free may go into this cache
//   kLocked           whether these two are asked under the thread's biased lock
//   unlockAndPublish  gives the biased lock up, then has the cache publish its counts
//
// The verbs know it without the lock, as their caller keeps the allocator alive. The C API has a
// handle, which another thread may destroy meanwhile. It compares the handle under the lock, by
// Note [Hits by handle].
//
// Note [Hits by handle]
// A thread's counters, with the biased lock, stay where they are for as long as the thread lives,
// whatever becomes of their allocator. The caches stay as long as the thread may look at them. So
// the thread takes the biased lock of the cache that it used last, and only then looks whose the
// cache is. The destructor first takes the handle away from all caches. Then it revokes all biased
// locks, passes a barrier, and waits for threads that hold theirs (biased_lock.hpp):
//
//   caller      held = 1       cache.handle == handle?   take, or give               held = 0
//   destroyer   handle = 0     revoked, barrier          held == 0?   revoked = 0    destroy
//
// The destructor waits for a caller that the barrier finds holding its lock. A later caller finds
// no such handle.
#pragma once

#include "allocator/engine/engine.hpp"
#include "cistern/allocator.hpp"

namespace cistern::fast_path {

/// The door of a caller for whom it is certain that the cache is the allocator's.
struct Known {
  static constexpr bool kLocked = false;
  static bool allowsHit(const ThreadCache&) { return true; }
  static bool has(const ThreadCache&) { return true; }
  static void unlockAndPublish(ThreadCache& cache) noexcept {
    cache.biasedLock().unlock();
    cache.publish();
  }
};

/// The door of the verbs, and of code that keeps the allocator alive as their caller does.
struct OfAllocator : Known {
  explicit OfAllocator(const CacheTable& all) : caches(all) {}
  bool allowsHit(const ThreadCache& cache) const { return caches.allowsHits(cache); }
  bool has(const ThreadCache& cache) const { return caches.has(cache); }

  const CacheTable& caches;
};

// Out of line, with the verb's own arguments: so a hit saves no registers for the call.
void* miss(CachingAllocator& allocator, std::size_t bytes, Stream stream);
void freeElsewhere(CachingAllocator& allocator, void* pointer, const void* caller,
                   Block* block) noexcept;

/// Sizes that have a bin each. As a rule, a hit is of one of these.
struct DirectSizes {
  static constexpr std::uint64_t kMost = CacheSizes::kDirectBytes;
  static Block* take(CachedBlocks& from, std::uint64_t bytes) { return from.takeDirect(bytes); }
  static bool give(CachedBlocks& to, Block& block, std::uint32_t granules, const void* caller) {
    return granules - 1 < CacheSizes::kDirect && to.giveDirect(block, granules, caller);
  }
  static SizeKind kindOf(std::uint32_t) { return SizeKind::kSmall; }
};
/// All that caches keep.
struct AllSizes {
  static constexpr std::uint64_t kMost = CacheSizes::kMostBytes;
  static Block* take(CachedBlocks& from, std::uint64_t bytes) { return from.take(bytes); }
  static bool give(CachedBlocks& to, Block& block, std::uint32_t, const void* caller) {
    return to.give(block, caller);
  }
  static SizeKind kindOf(std::uint32_t granules) { return CacheSizes::kindOf(granules); }
};

/// How a free finds the block among those that the thread was handed last.
struct Recent {
  Address address;
  Block* operator()(const ThreadCounters& mine) const { return mine.recents.find(address); }
};

namespace detail {
// Tail calls, so that their callers save no registers either.
template <class Door, class Result>
[[gnu::cold, gnu::noinline]] Result unlockFar(Door door, ThreadCache& cache,
                                              ThreadCounters::Kind& counts, std::uint64_t bytes,
                                              std::uint64_t requested, Result result) noexcept {
  counts.useUp(bytes, requested);
  door.unlockAndPublish(cache);
  return result;
}
template <class Door, class Hit>
[[gnu::cold, gnu::noinline]] auto unlockFar(Door door, ThreadCache& cache, Hit hit) noexcept {
  door.unlockAndPublish(cache);
  return hit();
}
}  // namespace detail

// A hit comes down to this when all is inlined, for a verb and a size that has a bin. `mine` are
// the counters of the cache, `counts` are mine.of(SizeKind::kSmall). `miss` gives the biased lock
// up, if it is held, and calls `missed`, which is out of line.
//
//   allocate(bytes, stream):
//     if (bytes - 1 >= 64 KiB || cache.stream != stream) miss;
//     if (cache.table != ground.allowing_hits) miss;           // another's; or a router is set
//     mine.held = 1;                                           // the biased lock
//     if (mine.revoked != 0) miss;
//     bin = stacks->bins[(bytes - 1) / 512], block = bin.top;
//     if (block == nullptr) miss;
//     bin.top = block->use.uses;                               // the one below it
//     block->use.asked = bytes, block->use.holder -= kCached;  // the program has it
//     cache.room += block->bytes();
//     address = deviceAddress(*block);
//     mine.recents[address / 512 % 64] = {address, block->head(), block};
//     counts.taken += {1, block->bytes(), bytes};
//     counts.room -= {1, block->bytes(), bytes};               // below 0: publish once unlocked
//     mine.held = 0;
//     return address;
//
//   free(address):
//     if (cache.table != the allocator's) miss;
//     mine.held = 1;
//     if (mine.revoked != 0) miss;
//     last = mine.recents[address / 512 % 64], block = last.block;
//     if (last.address != address || block->head() != last.head) miss;
//     if (block->use.holder != cache.holder) miss;             // another's, or not in use
//     if (block->granules > 128) miss;                         // larger than 64 KiB
//     if ((cache.room -= block->bytes()) < 0) miss;            // and cache.room is as it was
//     block->use.holder += kCached;                            // the cache has it
//     block->use.stream = caller, block->use.uses = bin.top, bin.top = block;
//     counts.room += {1, block->bytes(), block->use.asked};    // beyond most_bytes: publish
//     mine.held = 0;

// `cache`: the one that the thread used last. Both functions return what `hit` or `missed` returns,
// so that each caller's whole verb is one function without a call. `hit` is given the memory,
// under the biased lock; `missed` is called where nothing has changed yet, without it.

template <class Sizes = DirectSizes, class Door, class Hit, class Missed>
[[gnu::always_inline]] inline auto allocate(ThreadCache& cache, const Door& door, std::size_t bytes,
                                            Stream stream, Hit hit, Missed missed) {
  // The first comparison is for 0 too.
  if (bytes - 1 >= Sizes::kMost || cache.stream() != stream ||
      !(Door::kLocked || door.allowsHit(cache))) [[unlikely]]
    return missed();
  ThreadCounters& counters = cache.counters();
  if (!counters.biased_lock.tryLock()) [[unlikely]]
    return missed();
  const bool allowed = !Door::kLocked || door.allowsHit(cache);
  Block* const block = allowed ? Sizes::take(cache.blocks(), bytes) : nullptr;
  if (block == nullptr) [[unlikely]] {
    counters.biased_lock.unlock();
    return missed();
  }
  auto result = hit(ThreadCache::handOut(*block, counters.recents));
  ThreadCounters::Kind& counts = counters.of(Sizes::kindOf(block->granules));
  return counts.take(
      block->bytes(), bytes,
      [&](std::uint64_t rest, std::uint64_t rest_requested) __attribute__((always_inline)) {
        return detail::unlockFar(door, cache, counts, rest, rest_requested, result);
      },
      [&]() __attribute__((always_inline)) {
        counters.biased_lock.unlock();
        return result;
      });
}

/// `find`: the block, or null; called under the biased lock. `caller`: the code that is remembered
/// as the one that has freed. `missed` is given the block, or null.
template <class Sizes = DirectSizes, class Door, class Find, class Hit, class Missed>
[[gnu::always_inline]] inline auto free(ThreadCache& cache, const Door& door, Find find,
                                        const void* caller, Hit hit, Missed missed) noexcept {
  if (!(Door::kLocked || door.has(cache))) [[unlikely]]
    return missed(nullptr);
  ThreadCounters& counters = cache.counters();
  if (!counters.biased_lock.tryLock()) [[unlikely]]
    return missed(nullptr);
  Block* const block = !Door::kLocked || door.has(cache) ? find(counters) : nullptr;
  // Read once: it stays while the program has the block.
  const std::uint32_t granules = block != nullptr ? block->granules : 0;
  if (block == nullptr || block->use.holder != cache.holder() ||
      !Sizes::give(cache.blocks(), *block, granules, caller)) [[unlikely]] {
    counters.biased_lock.unlock();
    return missed(block);
  }
  const std::uint64_t bytes = std::uint64_t{granules} << kGranuleShift;
  if (counters.of(Sizes::kindOf(granules)).give(bytes, block->use.asked)) [[unlikely]]
    return detail::unlockFar(door, cache, hit);
  counters.biased_lock.unlock();
  return hit();
}

}  // namespace cistern::fast_path
