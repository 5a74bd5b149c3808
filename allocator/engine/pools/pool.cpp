#include "allocator/engine/pools/pool.hpp"

#include <algorithm>
#include <utility>

#include "allocator/base/check.hpp"
#include "allocator/engine/heap/heap.hpp"

namespace cistern {

MempoolId_t Pool::id() const {
  const MutexLock lock(mutex_);
  return id_;
}

std::shared_ptr<SegmentSource> Pool::source() const {
  if (default_) return nullptr;
  const MutexLock lock(mutex_);
  return traits_.source;
}

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

std::shared_ptr<void> Pool::token() const { return token_; }

bool Pool::visited() const { return token_.use_count() > 1; }

Heap* Pool::find(Stream stream) const {
  const MutexLock lock(mutex_);
  for (Heap* heap : heaps_) {
    if (heap->stream() == stream) return heap->gone() ? nullptr : heap;
  }
  return nullptr;
}

std::vector<Heap*> Pool::heaps() const {
  const MutexLock lock(mutex_);
  return heaps_;
}

Heap* Pool::heapAt(std::size_t index) const noexcept {
  const MutexLock lock(mutex_);
  return index < heaps_.size() ? heaps_[index] : nullptr;
}

std::size_t Pool::heapCount() const {
  const MutexLock lock(mutex_);
  return heaps_.size();
}

void Pool::makeRoom() {
  const MutexLock lock(mutex_);
  if (heaps_.size() == heaps_.capacity()) heaps_.reserve(2 * heaps_.size() + 1);
}

void Pool::add(Heap& heap) noexcept {
  const MutexLock lock(mutex_);
  heaps_.push_back(&heap);
}

void Pool::remove(Heap& heap) noexcept {
  const MutexLock lock(mutex_);
  std::erase(heaps_, &heap);
}

std::shared_ptr<Recording> Pool::recording() const {
  const MutexLock lock(mutex_);
  return recording_;
}

void Pool::setRecording(std::shared_ptr<Recording> recording) {
  const MutexLock lock(mutex_);
  recording_ = std::move(recording);
}

}  // namespace cistern
