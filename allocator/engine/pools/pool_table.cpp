#include "allocator/engine/pools/pool_table.hpp"

#include <algorithm>
#include <iterator>

#include "allocator/base/check.hpp"
#include "allocator/engine/giving_back.hpp"

namespace cistern {

// ---- One pool -----------------------------------------------------------------------------------

void Pool::open(MempoolId_t id, const PoolTraits& traits, const SizeRules& rules,
                MemoryBacking& backing) {
  const MutexLock lock(mutex_);
  CISTERN_CHECK(stage() == Stage::kNowhere && heaps_.empty());
  id_ = id;
  traits_ = traits;
  rules_ = &rules;
  backing_ = &backing;
  lends = false;
  stage_.store(Stage::kLive, std::memory_order_release);
}

bool Pool::change(const SizeRules& rules, MemoryBacking& backing) {
  const MutexLock lock(mutex_);
  if (!heaps_.empty()) return false;
  rules_ = &rules;
  backing_ = &backing;
  return true;
}

PoolTraits Pool::close() {
  const MutexLock lock(mutex_);
  CISTERN_CHECK(stage() == Stage::kDraining && heaps_.empty());
  id_ = {};
  lends = false;
  stage_.store(Stage::kNowhere, std::memory_order_release);
  return std::exchange(traits_, {});
}

Heap* Pool::find(Stream stream) const {
  Heap* const heap = heapWith(stream);
  return heap && !heap->gone() ? heap : nullptr;
}

Heap* Pool::heapWith(Stream handle) const {
  const MutexLock lock(mutex_);
  const auto it = std::ranges::find(heaps_, handle, &Heap::stream);
  return it != heaps_.end() ? *it : nullptr;
}

void Pool::remove(Heap& heap) noexcept {
  const MutexLock lock(mutex_);
  heaps_.erase(std::prev(std::find(heaps_.rbegin(), heaps_.rend(), &heap).base()));
}

void Pool::makeRoom() {
  const MutexLock lock(mutex_);
  if (heaps_.size() == heaps_.capacity()) heaps_.reserve(2 * heaps_.size() + 1);
}

// ---- All of them --------------------------------------------------------------------------------

Pool& PoolTable::open(MempoolId_t id, const PoolTraits& traits) {
  const MutexLock lock(mutex_);
  if (spare_.empty()) {
    if (spare_.capacity() <= pools_.size()) spare_.reserve(2 * pools_.size() + 1);
    spare_.push_back(&pools_.emplace_back(false, engine_.rules, engine_.backing()));
  }
  Pool& pool = *spare_.back();
  const SizeRules& rules = traits.no_split ? engine_.whole_rules
                           : traits.source ? engine_.segment_rules
                                           : engine_.rules;
  pool.open(id, traits, rules, traits.needsSegments() ? engine_.segments : engine_.backing());
  spare_.pop_back();
  return pool;
}

// No stream is asked: by the time that a pool's last user lets go, its streams may be gone.
void PoolTable::drain(Pool& pool) {
  pool.forEachHeap([this](Heap& heap) { engine_.progress.refreshByEvent(heap); });
  setLends(pool, false);
  pool.drain();
  pool.forEachHeap([this](Heap& heap) {
    const MutexLock lock(heap.mutex());
    engine_.heaps.setOffering(heap, !heap.withdrawn());
  });
}

void PoolTable::setLends(Pool& pool, bool lends) noexcept {
  if (pool.lends.exchange(lends) != lends) lenders_ += lends ? 1 : -1;
}

// All heaps leave the pool, or none. A heap stays while a thread asks about it, or while the device
// takes its last segment back.
std::optional<PoolTraits> PoolTable::close(Pool& pool) noexcept {
  bool empty = !pool.visited();
  pool.forEachHeap([&](Heap& heap) { empty = empty && holdsNothing(engine_, heap); });
  empty = empty && !pool.visited();
  while (Heap* heap = empty ? pool.lastHeap() : nullptr) empty = engine_.heaps.park(*heap);
  if (!empty) return std::nullopt;
  std::optional<PoolTraits> traits(pool.close());
  const MutexLock lock(mutex_);
  spare_.push_back(&pool);
  return traits;
}

// Pools that are opened at this moment may still be in pages: their first miss comes here, too.
void PoolTable::leavePages() {
  const MutexLock lock(mutex_);
  std::vector<Pool*> pools{&engine_.default_pool};
  for (Pool& pool : pools_) pools.push_back(&pool);
  engine_.heaps.leavePages(pools, engine_.segment_rules, engine_.segments);
}

// ---- The router --------------------------------------------------------------------------------

void PoolTable::setRouter(Router* router) {
  router_.store(router, std::memory_order_release);
  engine_.caches.setRouted(router != nullptr);
}

}  // namespace cistern
