#include "allocator/engine/heap/offering_heaps.hpp"

#include <cstring>

#include "allocator/base/check.hpp"
#include "allocator/engine/heap/heap.hpp"

namespace cistern {

void OfferingHeaps::add(Heap& heap) {
  const MutexLock lock(mutex_);
  offering_.resize(made_.size());  // what came of an attempt that failed goes
  offering_.push_back(1);
  made_.push_back(&heap);
  heap.join(*this, made_.size() - 1);
}

Heap* OfferingHeaps::next(std::size_t& number) const noexcept {
  const MutexLock lock(mutex_);
  if (number >= made_.size()) return nullptr;
  const std::uint8_t* const all = offering_.data();
  const void* const found = std::memchr(all + number, 1, made_.size() - number);
  if (found == nullptr) return nullptr;
  number = std::size_t(static_cast<const std::uint8_t*>(found) - all) + 1;
  return made_[number - 1];
}

void OfferingHeaps::audit(const std::vector<Heap*>& heaps) const {
  const MutexLock lock(mutex_);
  for (const Heap* heap : heaps) {
    heap->mutex().assertHeld();
    CISTERN_CHECK(made_[heap->number()] == heap);
    CISTERN_CHECK((offering_[heap->number()] == 0) == heap->withdrawn());
  }
}

// ---- A heap's part in it ------------------------------------------------------------------------

void withdrawIfEmpty(Heap& heap) noexcept {
  for (SizeKind kind : kSizeKinds) {
    const Layout& layout = heap.layout(kind);
    const FreeIndex& free = layout.freeBlocks();
    const bool whole = free.blocks() != layout.totals().split_free_blocks;
    if (heap.onPages() ? largestFree(free) >= Heap::kLeastPage : whole) return;
  }
  withdraw(heap);
}

// What the index has left out may be found later.
void withdraw(Heap& heap) noexcept {
  const bool left_out = heap.layout(SizeKind::kSmall).freeBlocks().hasLeftOut() ||
                        heap.layout(SizeKind::kLarge).freeBlocks().hasLeftOut();
  const bool aside = heap.pageNotes().aside() != 0;
  if (heap.among() == nullptr || heap.withdrawn() || left_out || aside) return;
  heap.setWithdrawn(true);
  heap.among()->set(heap, false);
}

void offerAgain(Heap& heap) noexcept {
  heap.setWithdrawn(false);
  heap.among()->set(heap, true);
}

}  // namespace cistern
