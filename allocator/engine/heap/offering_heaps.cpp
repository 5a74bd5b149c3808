#include "allocator/engine/heap/offering_heaps.hpp"

#include "allocator/base/check.hpp"
#include "allocator/engine/heap/heap.hpp"

namespace cistern {

void OfferingHeaps::add(Heap& heap) {
  const MutexLock lock(mutex_);
  offering_.reserve(made_.size() + 1);
  made_.push_back(&heap);
  heap.join(*this, made_.size() - 1);
  offering_.insert(heap.number());
}

void OfferingHeaps::withdraw(const Heap& heap) noexcept {
  const MutexLock lock(mutex_);
  offering_.erase(heap.number());
}

void OfferingHeaps::offer(const Heap& heap) noexcept {
  const MutexLock lock(mutex_);
  offering_.insert(heap.number());
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

// Whether it may have pages, or a segment, for other heaps. What the index has left out may be
// found later.
static bool offers(Heap& heap) CISTERN_REQUIRES(heap.mutex()) {
  if (heap.pageNotes().aside() != 0) return true;
  for (SizeKind kind : kSizeKinds) {
    const Layout& layout = heap.layout(kind);
    const FreeIndex& free = layout.freeBlocks();
    if (free.hasLeftOut()) return true;
    const bool whole = free.blocks() != layout.totals().split_free_blocks;
    if (heap.onPages() ? largestFree(free) >= Heap::kLeastPage : whole) return true;
  }
  return false;
}

void withdrawIfEmpty(Heap& heap) noexcept {
  if (!offers(heap)) withdraw(heap);
}

void withdraw(Heap& heap) noexcept {
  const bool left_out = heap.layout(SizeKind::kSmall).freeBlocks().hasLeftOut() ||
                        heap.layout(SizeKind::kLarge).freeBlocks().hasLeftOut();
  if (heap.withdrawn() || left_out || heap.pageNotes().aside() != 0) return;
  if (heap.among() == nullptr) return;
  heap.setWithdrawn(true);
  heap.among()->withdraw(heap);
}

void offerAgain(Heap& heap) noexcept {
  heap.setWithdrawn(false);
  heap.among()->offer(heap);
}

}  // namespace cistern
