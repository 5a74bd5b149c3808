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

void OfferingHeaps::set(const Heap& heap, bool offers) noexcept {
  const MutexLock lock(mutex_);
  offering_[heap.number()] = std::uint8_t(offers);
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

std::size_t OfferingHeaps::hostBytes() const {
  const MutexLock lock(mutex_);
  return made_.capacity() * sizeof(Heap*) + offering_.capacity();
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
