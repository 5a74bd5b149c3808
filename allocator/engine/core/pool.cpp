#include "allocator/engine/core/pool.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "allocator/base/check.hpp"

namespace cistern {

void Pool::open(MempoolId_t id, const PoolTraits& traits, const SizeRules& rules,
                MemoryKind memory) {
  const MutexLock lock(mutex_);
  CISTERN_CHECK(stage() == Stage::kNowhere && heaps_.empty());
  id_ = id;
  traits_ = traits;
  rules_ = &rules;
  memory_ = memory;
  lends = false;
  limit = traits.limit;
  stage_.store(Stage::kLive, std::memory_order_release);
}

bool Pool::change(const SizeRules& rules, MemoryKind memory) {
  const MutexLock lock(mutex_);
  if (!heaps_.empty()) return false;
  rules_ = &rules;
  memory_ = memory;
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
  return heap && !heap->forgotten() ? heap : nullptr;
}

Heap* Pool::heapWith(Stream handle, bool overflow) const {
  const MutexLock lock(mutex_);
  const auto it = std::ranges::find_if(heaps_, [&](const Heap* heap) {
    return heap->stream() == handle && heap->overflow() == overflow;
  });
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

std::string asleepText(const Pool& pool) {
  const MempoolId_t id = pool.id();
  return fmt::format("pool {{{}, {}}} is asleep: wake it first", id.uuid, id.uid);
}

}  // namespace cistern
