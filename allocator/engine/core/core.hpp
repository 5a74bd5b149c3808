// The state that all of an allocator's memory stands on: the device, the options, how much may be
// taken, and which heap has which address. It also has the heaps, the streams, and what is counted.
// The backings (backing/, pages/) and the pools work on it. Engine (engine.hpp) is built on top.
// Below stand what looks at all heaps, and the table of pools.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/base/process.hpp"
#include "allocator/engine/cache/cache_table.hpp"
#include "allocator/engine/cache/thread_cache.hpp"
#include "allocator/engine/core/heap_table.hpp"
#include "allocator/engine/core/progress.hpp"
#include "allocator/engine/events/known_streams.hpp"
#include "allocator/engine/events/spare_events.hpp"
#include "allocator/engine/ground/limit.hpp"
#include "allocator/engine/ground/observer.hpp"
#include "allocator/engine/ground/segment_map.hpp"
#include "allocator/engine/statistics/totals.hpp"
#include "allocator/hooks/hooked_memory.hpp"
#include "cistern/device.hpp"
#include "cistern/options.hpp"

namespace cistern {

/// The segment that covers an address, and the heap that has it; null for none.
struct Located {
  HeapSegment* segment = nullptr;
  Heap* heap = nullptr;
};

/// Each member says itself whether it is thread-safe, and how.
struct Core {
  /// Makes no device call. `total`: bytes of memory that the device has; 0 for an allocator that is
  /// never used.
  Core(Device& on, const Options& how, std::uint64_t total);

  Located locate(Address address) const noexcept {
    HeapSegment* const segment = map.find(address);
    if (segment == nullptr) return {};
    return {segment, segment->heap.load(std::memory_order_acquire)};
  }
  /// The device's name, as reports give it.
  std::string deviceName() const;
  /// A verb names the stream: KnownStreams::registerStream. Throws InvalidArgument for one that the
  /// device does not know.
  void meet(Stream stream);
  /// Counts `bytes` as taken if the limit, or the host, has room for them.
  bool admit(MemoryKind kind, std::uint64_t bytes) {
    if (isOfDevice(kind)) return limit.admit(bytes);
    return bytes <= device.hostPageBytesLeft() && limitOf(kind).admit(bytes);
  }
  /// They could not be had, or have gone back.
  void noteReturned(MemoryKind kind, std::uint64_t bytes) { limitOf(kind).noteReturned(bytes); }
  Limit& limitOf(MemoryKind kind) {
    return isOfDevice(kind) ? limit : kind == MemoryKind::kHostPages ? host_pages : overflow;
  }
  /// What could still be taken, as far as the limit tells, or the host.
  std::uint64_t leftFor(MemoryKind kind) const {
    if (isOfDevice(kind)) return limit.left();
    const std::uint64_t left = device.hostPageBytesLeft();
    return kind == MemoryKind::kHostPages ? left : std::min(left, overflow.left());
  }
  /// The host's memory that is taken for pages.
  std::uint64_t hostPageBytes() const { return host_pages.reserved() + overflow.reserved(); }
  /// No larger request can ever be served. The device's memory says nothing of the host's. With
  /// overflow, a block may lie in both.
  std::uint64_t mostFor(const Pool& pool) const {
    if (pool.location() == Location::kHost) return kLargestHostBlock;
    const std::uint64_t beyond = pool.onPages() ? overflow.limit() : 0;
    return std::max(device_total, std::min(device_total + beyond, kLargestHostBlock));
  }
  std::uint64_t now() const { return tick.load(std::memory_order_relaxed); }

  Device& device;
  const Birthplace made;
  const Options options;
  const SizeRules rules;
  const SizeRules segment_rules;  ///< of pools whose memory comes in segments in any case
  const SizeRules whole_rules;    ///< of pools that do not split
  const std::uint64_t device_total;
  Limit limit;       ///< of the device's memory
  Limit host_pages;  ///< of the host's memory, for pools that lie there; its limit is the host's
  Limit overflow;    ///< of the host's memory, for what the device has no room for; 0: off
  OverflowCounts overflow_counts;
  LastAnswer answers;                  ///< the device's last about memory and addresses
  std::atomic<std::uint64_t> tick{0};  ///< misses so far: the clock that segments age by
  /// The place of the next range in the order of age. Ranges are few, and their places are not
  /// given back.
  std::atomic<Address> range_places{kRangePlaces};

  /// Serialises threads that hold several heaps' locks. Taken before them.
  Mutex heaps_mutex{LockRank::kSeveralHeaps};

  Totals totals;
  std::unique_ptr<Observer> observer;  ///< null: there is none; set before the first request
  std::atomic<bool> observed{false};   ///< whether the observer is told of blocks and memory
  MemoryLog log;
  const std::shared_ptr<MemoryHooks> shared_memory_hooks = std::make_shared<MemoryHooks>(log);
  MemoryHooks& memory_hooks = *shared_memory_hooks;  ///< users of imported memory hold them too
  SegmentMap map;                                    ///< from an address to its segment, or range
  SpareEvents events;
  Pool default_pool;
  HeapTable heaps;
  KnownStreams streams;
  StreamProgress progress;
};

// ---- All heaps ----------------------------------------------------------------------------------

/// Calls visit(const std::vector<Heap*>&) with the locks of all heaps held and the threads' caches
/// empty. The heaps are in the order in which they were made. Throws std::bad_alloc.
template <class Visit>
void withAllHeaps(Core& core, Visit visit) {
  const MutexLock lock(core.heaps_mutex);
  std::vector<Heap*> heaps = core.heaps.all();
  const HeapLocks locks(core.heaps_mutex, heaps);
  const HeldCaches held_still(heaps);
  visit(heaps);
}

/// From now on the core's observer is told of each block and of all memory, or nobody. Pre: the
/// locks of all heaps and of their table are held, and the threads' caches are empty.
inline void observe(Core& core, const std::vector<Heap*>& heaps, bool on)
    CISTERN_REQUIRES(core.heaps.mutex()) {
  Observer* const observer = on ? core.observer.get() : nullptr;
  core.heaps.observe(observer);
  for (Heap* heap : heaps) {
    heap->mutex().assertHeld();
    heap->observe(observer);
    for (ThreadCache* cache : heap->caches())
      on ? cache->closeRemoteFrees() : cache->openRemoteFrees();
  }
  core.totals.refuseHits(on);
  core.log.listen(observer);
  core.observed.store(on, std::memory_order_relaxed);
}

// ---- All pools ----------------------------------------------------------------------------------

/// The pools of one allocator: memory kept apart begins and ends here. The folder pools/ decides
/// what uses which pool. The table owns the pools' records, and knows the router.
///
/// Thread-safe; nothing here may be called with a heap's lock held.
class PoolTable {
 public:
  PoolTable(Core& core, CacheTable& caches) : core_(core), caches_(caches) {}

  /// A new live pool. Throws std::bad_alloc, changing nothing.
  Pool& open(MempoolId_t id, const PoolTraits& traits);
  /// The pool's last user has let go: its free memory is anyone's from now on. Calls no observer.
  void drain(Pool& pool);
  /// Lets go of a draining pool. Returns its traits, to be let go of without a lock. Returns none,
  /// and the pool stays, while it holds memory or is visited.
  std::optional<PoolTraits> close(Pool& pool) noexcept;
  /// Whether the default pool may take from the pool. Pre: the pool is live, and no other thread
  /// changes that, or this, meanwhile.
  void setLends(Pool& pool, bool lends) noexcept;
  /// The memory of all pools comes in segments from now on. Pre: PageBacking::areRefused(). Throws
  /// std::bad_alloc, changing nothing.
  void leavePages();
  /// Whether there is a pool that lends to this request's.
  bool anyLenders(const Request& request) const {
    return request.pool->isDefault() && lenders_.load(std::memory_order_relaxed) > 0;
  }

  /// Keeps the router as long as the allocator lives. A request that was under way when another was
  /// set may come to it at any time.
  void keepRouter(std::shared_ptr<Router> router) {
    const MutexLock lock(mutex_);
    routers_.push_back(std::move(router));
  }
  /// Sets the router, which decides the pool of a request that names none. With null, all go to the
  /// default pool. The router is kept, or outlives requests that are under way.
  void setRouter(Router* router);
  /// Whether there is one.
  bool routed() const { return router_.load(std::memory_order_relaxed) != nullptr; }
  /// The present route of a request of the calling thread on the stream.
  Route route(Stream stream, Router::Asked asked = Router::Asked::kCapturesAndScopes) {
    Router* const router = router_.load(std::memory_order_acquire);
    return router ? router->route(stream, asked) : Route{};
  }

 private:
  MemoryKind memoryWith(const PoolTraits& traits) const;

  Core& core_;
  CacheTable& caches_;
  std::atomic<Router*> router_{nullptr};
  mutable Mutex mutex_{LockRank::kPoolTable};
  std::deque<Pool> pools_ CISTERN_GUARDED_BY(mutex_);
  std::vector<Pool*> spare_ CISTERN_GUARDED_BY(mutex_);  ///< those that are nowhere; room for all
  std::atomic<int> lenders_{0};                          ///< live pools that lend
  std::vector<std::shared_ptr<Router>> routers_ CISTERN_GUARDED_BY(mutex_);
};

}  // namespace cistern
