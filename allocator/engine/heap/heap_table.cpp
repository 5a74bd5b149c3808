#include "allocator/engine/heap/heap_table.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "allocator/base/check.hpp"
#include "allocator/engine/cache/held_caches.hpp"

namespace cistern {
HeapTable::HeapTable(Pool& default_pool, std::size_t free_log, Totals& totals)
    : default_pool_(default_pool),
      free_log_(free_log),
      totals_(totals),
      nowhere_(false, default_pool.rules(), default_pool.backing()) {
  slots_.store(&generations_.emplace_back(16), std::memory_order_release);
}

// ---- From a stream to its heap ------------------------------------------------------------------

// Every table ever used has empty slots at all times.
Heap* HeapTable::find(Stream stream) const noexcept {
  const Slots& slots = *slots_.load(std::memory_order_acquire);
  const std::size_t mask = slots.size() - 1;
  for (std::size_t i = hashOf(stream) & mask;; i = (i + 1) & mask) {
    Heap* const heap = slots[i].load(std::memory_order_acquire);
    if (heap == nullptr) return nullptr;
    if (heap->stream() == stream) return heap->serves(stream) ? heap : nullptr;
  }
}

void HeapTable::fill(Slots& slots, Heap* heap) noexcept {
  const std::size_t mask = slots.size() - 1;
  std::size_t i = hashOf(heap->stream()) & mask;
  while (slots[i].load(std::memory_order_relaxed) != nullptr) i = (i + 1) & mask;
  slots[i].store(heap, std::memory_order_release);
}

// Makes sure that one more heap finds a slot. What slots say of streams that heaps have left is
// dropped now and then, in another table of that size.
void HeapTable::makeRoom() {
  const Slots* const now = slots_.load(std::memory_order_relaxed);
  if ((used_slots_ + 1) * 2 <= now->size()) return;
  const std::vector<Heap*> heaps = default_pool_.heaps();
  used_slots_ = heaps.size();
  const std::size_t size = std::bit_ceil(4 * (used_slots_ + 1));
  auto next = std::ranges::find_if(
      generations_, [&](const Slots& slots) { return &slots != now && slots.size() == size; });
  if (next == generations_.end()) next = generations_.emplace(next, size);
  for (auto& slot : *next) slot.store(nullptr, std::memory_order_relaxed);
  for (Heap* heap : heaps) fill(*next, heap);
  slots_.store(&*next, std::memory_order_release);
}

// ---- Heaps begin --------------------------------------------------------------------------------

// Where there are other streams they will look for memory in it, and a stream that is used once
// frees all that it has before anybody does.
Heap& HeapTable::make(Pool& pool, Stream stream) {
  auto heap = std::make_unique<Heap>(pool, stream, free_log_, totals_);
  Heap& made = *heap;
  const MutexLock heap_lock(made.mutex());
  const MutexLock lock(list_mutex_);
  const std::size_t number = heaps_.size();
  for (std::vector<Heap*>* list : {&parked_, &gone_}) list->reserve(heaps_.capacity() + 1);
  offering_.resize(number);  // what came of an attempt that failed goes
  offering_.push_back(1);
  heaps_.push_back(std::move(heap));
  made.join(*this, number);
  if (number > 0) made.completion().noteSought();
  return made;
}

// Ranges of addresses stay with a heap, so that one which is used again needs no new ones; hence a
// parked heap goes on with the backing it had. One of the default pool's stays that, as slots and
// caches name it.
Heap* HeapTable::takeParked(Pool& pool, Stream stream) noexcept {
  for (std::size_t i = parked_.size(); i-- > 0;) {
    Heap* const heap = parked_[i];
    const bool alike =
        &heap->backing() == &pool.backing() && heap->pool().isDefault() == pool.isDefault();
    if (!alike || !heap->moveTo(pool, stream)) continue;
    parked_.erase(parked_.begin() + std::ptrdiff_t(i));
    return heap;
  }
  return nullptr;
}

// Threads that look at all heaps see a heap as soon as it is made, so that it cannot be taken back:
// making it is the last step that may fail.
Heap& HeapTable::findOrMake(Pool& pool, Stream stream) {
  const MutexLock lock(mutex_);
  const bool in_default = pool.isDefault();
  if (Heap* there = in_default ? find(stream) : pool.find(stream)) return *there;
  pool.makeRoom();
  if (in_default) makeRoom();
  const auto entry = by_stream_.emplace(stream.raw, nullptr);
  Heap* heap = takeParked(pool, stream);
  const bool new_here = heap == nullptr || !in_default;
  try {
    if (heap == nullptr) heap = &make(pool, stream);
  } catch (...) {
    by_stream_.erase(entry);
    throw;
  }
  entry->second = heap;
  if (new_here) pool.add(*heap);
  if (in_default) fill(*slots_.load(std::memory_order_relaxed), heap);
  used_slots_ += in_default;
  return *heap;
}

// ---- Heaps end ----------------------------------------------------------------------------------

bool HeapTable::park(Heap& heap) noexcept {
  const MutexLock lock(mutex_);
  Pool& pool = heap.pool();
  const Stream stream = heap.stream();
  const bool in_default = pool.isDefault();
  if (in_default ? !heap.gone() : pool.stage() != Pool::Stage::kDraining) return false;
  if (!heap.moveTo(in_default ? pool : nowhere_, kNobodys)) return false;
  in_default ? void(std::erase(gone_, &heap)) : pool.remove(heap);
  parked_.push_back(&heap);
  const auto [first, last] = by_stream_.equal_range(stream.raw);
  by_stream_.erase(
      std::find_if(first, last, [&](const auto& entry) { return entry.second == &heap; }));
  return true;
}

void HeapTable::setGone(Stream stream, bool gone) noexcept {
  const MutexLock lock(mutex_);
  const auto [first, last] = by_stream_.equal_range(stream.raw);
  for (auto it = first; it != last; ++it) {
    Heap& heap = *it->second;
    if (heap.pool().isDefault() && gone != heap.gone())
      gone ? gone_.push_back(&heap) : void(std::erase(gone_, &heap));
    const MutexLock heap_lock(heap.mutex());
    heap.setGone(gone);
    if (gone) const HeldCaches emptied(heap);  // they keep nothing from here on
  }
}

Heap* HeapTable::nextGone() noexcept {
  const MutexLock lock(mutex_);
  if (gone_.empty()) return nullptr;
  next_gone_ = next_gone_ + 1 < gone_.size() ? next_gone_ + 1 : 0;
  return gone_[next_gone_];
}

// ---- All of them --------------------------------------------------------------------------------

std::vector<Heap*> HeapTable::all() const {
  const MutexLock lock(list_mutex_);
  std::vector<Heap*> heaps(heaps_.size());
  std::ranges::transform(heaps_, heaps.begin(), [](const auto& heap) { return heap.get(); });
  return heaps;
}

Heap* HeapTable::nextOffering(std::size_t& number) const noexcept {
  const MutexLock lock(list_mutex_);
  if (number >= heaps_.size()) return nullptr;
  const std::uint8_t* const all = offering_.data();
  const void* const found = std::memchr(all + number, 1, heaps_.size() - number);
  if (found == nullptr) return nullptr;
  number = std::size_t(static_cast<const std::uint8_t*>(found) - all) + 1;
  return heaps_[number - 1].get();
}

std::size_t HeapTable::hostBytes() const {
  const MutexLock lock(mutex_);
  std::size_t slots = parked_.capacity() + gone_.capacity();
  for (const Slots& one : generations_) slots += one.size();
  const MutexLock list_lock(list_mutex_);
  return (slots + heaps_.capacity()) * sizeof(void*) + offering_.capacity();
}

void HeapTable::audit(const std::vector<Heap*>& heaps) const {
  const MutexLock lock(list_mutex_);
  for (const Heap* heap : heaps) {
    heap->mutex().assertHeld();
    CISTERN_CHECK(heaps_[heap->number()].get() == heap);
    CISTERN_CHECK((offering_[heap->number()] == 0) == heap->withdrawn());
  }
}

// ---- A heap that offers something, or nothing ---------------------------------------------------

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
  const bool aside = !heap.pageNotes().aside.empty();
  if (heap.table() == nullptr || heap.withdrawn() || left_out || aside) return;
  heap.table()->setOffering(heap, false);
}

}  // namespace cistern
