// The usual case: the calling thread has a block of that size in its cache, and has room for one
// that it frees. It takes no lock and no locked instruction, and makes no device call. It allocates
// nothing on the host, and looks at nothing that another thread writes. Everything else is in
// slow_path.hpp. Read with: cache/thread_cache.hpp. A test keeps the number of instructions that it
// takes.
//
// The functions are inline, for the doors that a program comes in by. These are the verbs of
// CachingAllocator, the C API's calls of the same names, and the preload library's hooks. A door
// defines how it knows that the cache is the allocator's:
//
//   serves, has       of a request, and of a free
//   kInside           whether they are asked inside the gate
//   leaveAndPublish   inside: leaves the gate, then has the cache publish its counts
//
// The verbs know it outside, as their caller keeps the allocator alive. The C API has a handle,
// which another thread may destroy meanwhile, and compares it inside: Note [Hits by handle].
//
// Note [Hits by handle]
// A thread's counters, which own the gate, stay where they are for as long as the thread lives,
// whatever becomes of their allocator. The caches stay as long as the thread may look at them. So
// the thread enters the gate of the cache that it used last, and only then looks whose the cache
// is. The destructor first takes the handle away from all caches. Then it closes all gates, passes
// a barrier, and waits for threads inside (biased_gate.hpp):
//
//   caller      inside = 1     cache.handle == handle?   take, or give                inside = 0
//   destroyer   handle = 0     closed, barrier           inside == 0?   closed = 0    destroy
//
// The destructor waits for a caller that the barrier finds inside. A later caller finds no such
// handle.
#pragma once

#include "allocator/engine/engine.hpp"
#include "cistern/allocator.hpp"

namespace cistern::fast_path {

/// The door of a caller for whom it is certain that the cache is the allocator's.
struct Known {
  static constexpr bool kInside = false;
  static bool serves(const ThreadCache&) { return true; }
  static bool has(const ThreadCache&) { return true; }
  static void leaveAndPublish(ThreadCache& cache) noexcept {
    cache.gate().leave();
    cache.publish();
  }
};

/// The door of the verbs, and of code that keeps the allocator alive as their caller does.
struct OfAllocator : Known {
  explicit OfAllocator(const CacheTable& all) : caches(all) {}
  bool serves(const ThreadCache& cache) const { return caches.serves(cache); }
  bool has(const ThreadCache& cache) const { return caches.has(cache); }

  const CacheTable& caches;
};

// Out of line and with the verb's own arguments, so that a hit has nothing to keep for them.
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
// Last calls of their callers, so that those have nothing to keep for them either.
template <class Door, class Result>
[[gnu::cold, gnu::noinline]] Result leaveFar(Door door, ThreadCache& cache,
                                             ThreadCounters::Kind& counts, std::uint64_t bytes,
                                             std::uint64_t requested, Result result) noexcept {
  counts.useUp(bytes, requested);
  door.leaveAndPublish(cache);
  return result;
}
template <class Door, class Hit>
[[gnu::cold, gnu::noinline]] auto leaveFar(Door door, ThreadCache& cache, Hit hit) noexcept {
  door.leaveAndPublish(cache);
  return hit();
}
}  // namespace detail

// `cache`: the one that the thread used last. Both functions return what `hit` or `missed` returns,
// so that each caller's whole verb is one function without a call. `hit` is given the memory,
// inside the gate; `missed` is called where nothing has changed yet, outside the gate.

template <class Sizes = DirectSizes, class Door, class Hit, class Missed>
[[gnu::always_inline]] inline auto allocate(ThreadCache& cache, const Door& door, std::size_t bytes,
                                            Stream stream, Hit hit, Missed missed) {
  // The first comparison is for 0 too.
  if (bytes - 1 >= Sizes::kMost || cache.stream() != stream ||
      !(Door::kInside || door.serves(cache))) [[unlikely]]
    return missed();
  ThreadCounters& counters = cache.counters();
  if (!counters.gate.enter()) [[unlikely]]
    return missed();
  const bool serves = !Door::kInside || door.serves(cache);
  Block* const block = serves ? Sizes::take(cache.blocks(), bytes) : nullptr;
  if (block == nullptr) [[unlikely]] {
    counters.gate.leave();
    return missed();
  }
  auto result = hit(ThreadCache::handOut(*block, counters.recents));
  ThreadCounters::Kind& counts = counters.of(Sizes::kindOf(block->granules));
  return counts.take(
      block->bytes(), bytes,
      [&](std::uint64_t rest, std::uint64_t rest_requested) __attribute__((always_inline)) {
        return detail::leaveFar(door, cache, counts, rest, rest_requested, result);
      },
      [&]() __attribute__((always_inline)) {
        counters.gate.leave();
        return result;
      });
}

/// `find`: the block, or null; called inside the gate. `caller`: the code that is remembered as the
/// one that has freed. `missed` is given the block, or null.
template <class Sizes = DirectSizes, class Door, class Find, class Hit, class Missed>
[[gnu::always_inline]] inline auto free(ThreadCache& cache, const Door& door, Find find,
                                        const void* caller, Hit hit, Missed missed) noexcept {
  if (!(Door::kInside || door.has(cache))) [[unlikely]]
    return missed(nullptr);
  ThreadCounters& counters = cache.counters();
  if (!counters.gate.enter()) [[unlikely]]
    return missed(nullptr);
  Block* const block = !Door::kInside || door.has(cache) ? find(counters) : nullptr;
  // Read once: it stays while the program has the block.
  const std::uint32_t granules = block != nullptr ? block->granules : 0;
  if (block == nullptr || block->use.holder != cache.holder() ||
      !Sizes::give(cache.blocks(), *block, granules, caller)) [[unlikely]] {
    counters.gate.leave();
    return missed(block);
  }
  const std::uint64_t bytes = std::uint64_t{granules} << kGranuleShift;
  if (counters.of(Sizes::kindOf(granules)).give(bytes, block->use.asked)) [[unlikely]]
    return detail::leaveFar(door, cache, hit);
  counters.gate.leave();
  return hit();
}

}  // namespace cistern::fast_path
