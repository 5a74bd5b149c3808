#include "allocator/engine/offering_heaps.hpp"

#include "allocator/base/check.hpp"
#include "allocator/engine/heap.hpp"

namespace cistern {

void OfferingHeaps::add(Heap& heap) {
  const MutexLock lock(mutex_);
  offering_.reserve(made_.size() + 1);
  made_.push_back(&heap);
  heap.offering = {this, made_.size() - 1};
  offering_.insert(heap.offering.number);
}

void OfferingHeaps::withdraw(const Heap& heap) noexcept {
  const MutexLock lock(mutex_);
  offering_.erase(heap.offering.number);
}

void OfferingHeaps::offer(const Heap& heap) noexcept {
  const MutexLock lock(mutex_);
  offering_.insert(heap.offering.number);
}

Heap* OfferingHeaps::next(std::size_t& number) const noexcept {
  const MutexLock lock(mutex_);
  const std::size_t next = offering_.next(number);
  if (next == HeapSet::kNone) return nullptr;
  number = next + 1;
  return made_[next];
}

std::size_t OfferingHeaps::hostBytes() const {
  const MutexLock lock(mutex_);
  return made_.capacity() * sizeof(Heap*) + offering_.hostBytes();
}

void OfferingHeaps::audit(const std::vector<Heap*>& heaps) const {
  const MutexLock lock(mutex_);
  for (const Heap* heap : heaps) {
    heap->mutex().assertHeld();
    CISTERN_CHECK(made_[heap->number()] == heap);
    CISTERN_CHECK(offering_.contains(heap->number()) != heap->withdrawn());
  }
}

// ---- A heap's part in it ------------------------------------------------------------------------

void Heap::withdraw() noexcept {
  const bool left_out = small_.freeBlocks().hasLeftOut() || large_.freeBlocks().hasLeftOut();
  if (withdrawn_ || left_out || aside.load(std::memory_order_relaxed) != 0) return;
  if (offering.among == nullptr) return;
  withdrawn_ = true;
  offering.among->withdraw(*this);
}

void Heap::offerAgain() noexcept {
  withdrawn_ = false;
  offering.among->offer(*this);
}

bool Heap::offers() const noexcept {
  if (aside.load(std::memory_order_relaxed) != 0) return true;
  for (const Layout* layout : {&small_, &large_}) {
    if (layout->freeBlocks().hasLeftOut()) return true;  // it may be found later
    const bool whole = layout->freeBlocks().blocks() != layout->splitFreeBlocks();
    if (on_pages_ ? largestFree(layout->freeBlocks()) >= kLeastPage : whole) return true;
  }
  return false;
}

}  // namespace cistern
