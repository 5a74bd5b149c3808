// Memory kept apart: pools begin and end, lend, are emptied one at a time, and are set back to what
// they were. Who uses which pool is for pools/ to say.
#include <algorithm>
#include <mutex>

#include <fmt/format.h>

#include "allocator/engine/cache/held_caches.hpp"
#include "allocator/engine/caching_allocator.hpp"

namespace cistern {

Pool& CachingAllocator::openPool(MempoolId_t id, const PoolTraits& traits) {
  const MutexLock lock(pools_mutex_);
  const auto spare = std::find_if(pools_.begin(), pools_.end(), [](const auto& pool) {
    return pool->stage() == Pool::Stage::kNowhere;
  });
  Pool* pool = spare != pools_.end() ? spare->get() : nullptr;
  if (pool == nullptr) {
    pools_.push_back(std::make_unique<Pool>(false, rules_, pages_ != nullptr));
    pool = pools_.back().get();
  }
  const SizeRules& rules = traits.no_split ? whole_rules_ : traits.source ? segment_rules_ : rules_;
  pool->open(id, traits, rules, pages_ != nullptr && !traits.needsSegments());
  return *pool;
}

bool CachingAllocator::setNoSplit(Pool& pool) { return pool.change(whole_rules_, false); }

// No stream is asked: by the time that a pool's last user lets go, its streams may be gone.
void CachingAllocator::drainPool(Pool& pool) {
  pool.forEachHeap([this](Heap& heap) { progress_.refreshByEvent(heap); });
  pool.drain();
}

// A heap may go to another stream only when nothing that the present one did is still under way.
bool CachingAllocator::holdsNothing(Heap& heap) {
  const auto empty = [&]() CISTERN_REQUIRES(heap.mutex()) {
    return heap.counts().reservedBytes() == 0 && heap.busyBytes() == 0 && !heap.leaving().any();
  };
  {
    const MutexLock lock(heap.mutex());  // most hold something: the device is not asked for those
    if (!empty()) return false;
  }
  progress_.refreshByEvent(heap);
  {
    const MutexLock lock(heap.mutex());
    if (!empty() || heap.completion().isAsked()) return false;
  }
  return !heap.onPages() || pages_->forgets(heap);
}

// All of them, or none: a heap that another thread has just begun to ask about stays, and so does
// one whose last segment is on its way back: whoever takes that out of its heap visits the pool.
bool CachingAllocator::closeHeaps(Pool& pool) noexcept {
  bool empty = true;
  pool.forEachHeap([&](Heap& heap) { empty = empty && holdsNothing(heap); });
  empty = empty && !pool.visited();
  while (Heap* heap = empty ? pool.heapAt(0) : nullptr) empty = heaps_.park(*heap);
  return empty;
}

std::vector<CachingAllocator::ClosedPool> CachingAllocator::closeDrainedPools() {
  std::vector<ClosedPool> closed;
  const MutexLock lock(pools_mutex_);
  closed.reserve(pools_.size());  // what is closed is said
  for (const auto& pool : pools_) {
    if (pool->stage() != Pool::Stage::kDraining || pool->visited() || !closeHeaps(*pool)) continue;
    const MempoolId_t id = pool->id();
    closed.push_back({id, pool->close()});
  }
  return closed;
}

void CachingAllocator::keepRouter(std::shared_ptr<Router> router) {
  const MutexLock lock(pools_mutex_);
  routers_.push_back(std::move(router));
}

MempoolId_t CachingAllocator::poolFor(Stream stream) {
  Router* const router = router_.load(std::memory_order_acquire);
  const Route route = router ? router->route(stream) : Route{};
  return route.pool ? route.pool->id() : MempoolId_t{};
}

// ---- Giving back -------------------------------------------------------------------------------

std::vector<Heap*> CachingAllocator::heapsOf(const Pool& pool) const {
  if (!pool.isDefault()) return pool.heaps();
  std::vector<Heap*> heaps = heaps_.all();
  std::erase_if(heaps, [&](const Heap* heap) { return &heap->pool() != &pool; });
  return heaps;
}

void CachingAllocator::emptyCache(Pool& pool) {
  flushCaches();
  pollPending();
  pending_.waitForStuck();
  const std::vector<Heap*> heaps = heapsOf(pool);
  pool.onPages() ? pages_->emptyCache(heaps) : void(segment_backing_.releaseIdle(heaps));
}

void CachingAllocator::trim(Pool& pool, std::uint64_t bytes) {
  flushCaches();
  pollPending();
  const std::vector<Heap*> heaps = heapsOf(pool);
  std::uint64_t held = 0;
  for (Heap* heap : heaps) {
    const MutexLock lock(heap->mutex());
    held += heap->counts().reservedBytes();
  }
  if (held <= bytes) return;
  (void)(pool.onPages() ? pages_->release(heaps, held - bytes)
                        : segment_backing_.releaseIdle(heaps, held - bytes));
}

// ---- Lending -----------------------------------------------------------------------------------

bool CachingAllocator::anyLenders(const Request& request) const {
  if (!request.pool->isDefault()) return false;
  const MutexLock lock(pools_mutex_);
  return std::any_of(pools_.begin(), pools_.end(), [](const auto& pool) {
    return pool->stage() == Pool::Stage::kLive && pool->lends;
  });
}

// What lies free in a pool that lends, rather than be out of memory: a block as it is, as a loan,
// or wholly free pages. Never what a graph may write to.
Block* CachingAllocator::fromLenders(Heap& heap, const Request& request) {
  if (!anyLenders(request)) return nullptr;
  for (Heap* owner : heaps_.all()) {
    if (!lends(owner->pool(), request)) continue;
    progress_.seek(*owner);
    if (Block* block = fromLender(*owner, request)) return block;
  }
  return onPages(request) ? pages_->serve(heap, request, PagesFrom::kLenders) : nullptr;
}

bool CachingAllocator::lends(const Pool& pool, const Request& request) {
  return &pool != request.pool && pool.stage() == Pool::Stage::kLive && pool.lends;
}

// Pages are pinned under the backing's lock. The heap may have another pool by now.
Block* CachingAllocator::fromLender(Heap& owner, const Request& request) {
  std::unique_lock<Mutex> backing;
  if (owner.onPages()) backing = std::unique_lock(pages_->mutex());
  const MutexLock lock(owner.mutex());
  if (!lends(owner.pool(), request)) return nullptr;
  const bool own = owner.stream() == request.stream;
  const Epochs epochs = own ? Epochs{} : Epochs::upTo(owner.completion().completed());
  Layout& layout = owner.layout(request.kind);
  layout.listLeftOut();
  Block* free = layout.freeBlocks().bestFitIf(request.granules, [&](const Block& b) {
    if (!epochs.contain(b.epoch) || !layout.serves(b, request.granules)) return false;
    return owner.onPages() ? !PageBacking::pinned(b) : !pinned_segments_.pinned(segmentOf(b));
  });
  if (free == nullptr) return nullptr;
  Request lent = request;
  lent.recorded_by = Request::kLent;
  return owner.allocateFrom(*free, lent);
}

// ---- Counting ----------------------------------------------------------------------------------

MemoryStats::Values CachingAllocator::poolStats(const Pool& pool) const {
  MemoryStats::Values values;
  for (Heap* heap : heapsOf(pool)) {
    const MutexLock lock(heap->mutex());
    const HeldCaches held_still(*heap);
    for (const SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
      const StatArray usage = heap->counts().usage(kind);
      for (std::size_t stat = 0; stat < kStatCount; ++stat) values[stat].current += usage[stat];
    }
  }
  return values;
}

}  // namespace cistern
