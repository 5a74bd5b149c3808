#include "allocator/engine/pools/pool_table.hpp"

#include <algorithm>

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

void Pool::makeRoom() {
  const MutexLock lock(mutex_);
  if (heaps_.size() == heaps_.capacity()) heaps_.reserve(2 * heaps_.size() + 1);
}

// ---- All of them --------------------------------------------------------------------------------

Pool& PoolTable::open(MempoolId_t id, const PoolTraits& traits) {
  const MutexLock lock(mutex_);
  const auto spare = std::ranges::find(pools_, Pool::Stage::kNowhere, &Pool::stage);
  Pool& pool =
      spare != pools_.end() ? *spare : pools_.emplace_back(false, engine_.rules, engine_.backing());
  const SizeRules& rules = traits.no_split ? engine_.whole_rules
                           : traits.source ? engine_.segment_rules
                                           : engine_.rules;
  pool.open(id, traits, rules, traits.needsSegments() ? engine_.segments : engine_.backing());
  return pool;
}

// No stream is asked: by the time that a pool's last user lets go, its streams may be gone.
void PoolTable::drain(Pool& pool) {
  pool.forEachHeap([this](Heap& heap) { engine_.progress.refreshByEvent(heap); });
  pool.drain();
}

// All heaps leave the pool, or none. A heap stays while a thread asks about it, or while the device
// takes its last segment back.
std::optional<PoolTraits> PoolTable::close(Pool& pool) noexcept {
  bool empty = !pool.visited();
  pool.forEachHeap([&](Heap& heap) { empty = empty && holdsNothing(engine_, heap); });
  empty = empty && !pool.visited();
  while (Heap* heap = empty ? pool.heapAt(0) : nullptr) empty = engine_.heaps.park(*heap);
  return empty ? std::optional(pool.close()) : std::nullopt;
}

bool PoolTable::anyLenders(const Request& request) const {
  if (!request.pool->isDefault()) return false;
  const MutexLock lock(mutex_);
  return std::ranges::any_of(pools_, &Pool::lendsNow);
}

// ---- The router --------------------------------------------------------------------------------

void PoolTable::setRouter(Router* router) {
  router_.store(router, std::memory_order_release);
  engine_.caches.setRouted(router != nullptr);
}

}  // namespace cistern
