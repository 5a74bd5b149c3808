#include "allocator/engine/heap/heap_table.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "allocator/engine/cache/held_caches.hpp"

namespace cistern {
HeapTable::HeapTable(Pool& default_pool, std::size_t free_log, Totals& totals)
    : default_pool_(default_pool),
      free_log_(free_log),
      totals_(totals),
      nowhere_(false, default_pool.rules(), default_pool.backing()) {
  generations_.push_back(std::make_unique<Slots>(16));
  slots_.store(generations_.back().get(), std::memory_order_release);
}

// ---- From a stream to its heap ------------------------------------------------------------------

Heap* HeapTable::find(Stream stream) const noexcept {
  Heap* const heap = lookUp(stream);
  return heap != nullptr && heap->serves(stream) ? heap : nullptr;
}

// Every table ever used has empty slots at all times.
Heap* HeapTable::lookUp(Stream stream) const noexcept {
  const Slots& slots = *slots_.load(std::memory_order_acquire);
  const std::size_t mask = slots.heaps.size() - 1;
  for (std::size_t i = hashOf(stream) & mask;; i = (i + 1) & mask) {
    Heap* const heap = slots.heaps[i].load(std::memory_order_acquire);
    if (heap == nullptr || heap->stream() == stream) return heap;
  }
}

void HeapTable::fill(Slots& slots, Heap* heap) noexcept {
  const std::size_t mask = slots.heaps.size() - 1;
  std::size_t i = hashOf(heap->stream()) & mask;
  while (slots.heaps[i].load(std::memory_order_relaxed) != nullptr) i = (i + 1) & mask;
  slots.heaps[i].store(heap, std::memory_order_release);
}

void HeapTable::place(Heap& heap) noexcept {
  fill(*slots_.load(std::memory_order_relaxed), &heap);
  ++used_slots_;
}

// Makes sure that one more heap finds a slot. What slots say of streams that heaps have left is
// dropped now and then, in another table of that size.
void HeapTable::makeRoom() {
  if ((used_slots_ + 1) * 2 <= slots_.load(std::memory_order_relaxed)->heaps.size()) return;
  Slots& next = slotsOf(std::bit_ceil(4 * (in_default_ + 1)));
  for (auto& slot : next.heaps) slot.store(nullptr, std::memory_order_relaxed);
  for (const auto& heap : heaps_) {
    if (&heap->pool() == &default_pool_) fill(next, heap.get());
  }
  used_slots_ = in_default_;
  slots_.store(&next, std::memory_order_release);
}

HeapTable::Slots& HeapTable::slotsOf(std::size_t size) {
  const Slots* const now = slots_.load(std::memory_order_relaxed);
  for (const auto& slots : generations_) {
    if (slots.get() != now && slots->heaps.size() == size) return *slots;
  }
  generations_.push_back(std::make_unique<Slots>(size));
  return *generations_.back();
}

// ---- Heaps begin --------------------------------------------------------------------------------

// Where there are other streams they will look for memory in it, and a stream that is used once
// frees all that it has before anybody does.
static void beginAsSought(Heap& heap) {
  const MutexLock lock(heap.mutex());
  heap.completion().noteSought();
}

Heap& HeapTable::make(Pool& pool, Stream stream) {
  heaps_.push_back(std::make_unique<Heap>(pool, stream, free_log_, totals_));
  try {
    parked_.reserve(heaps_.capacity());
    gone_.reserve(heaps_.capacity());
    offering_.add(*heaps_.back());
  } catch (...) {
    heaps_.pop_back();
    throw;
  }
  Heap& made = *heaps_.back();
  if (heaps_.size() > 1) beginAsSought(made);
  return made;
}

Heap& HeapTable::findOrMake(Stream stream, Heap* spare) {
  const MutexLock lock(mutex_);
  const bool usable = spare != nullptr && enlistTaken(*spare);
  if (Heap* there = find(stream)) return *there;  // another thread made it meanwhile
  makeRoom();
  if (usable && spare->moveTo(default_pool_, stream)) {
    unlistGone(*spare);
    place(*spare);
    return *spare;
  }
  Heap& heap = make(default_pool_, stream);
  ++in_default_;
  place(heap);
  return heap;
}

// Ranges of addresses stay with a heap, so that one which is used again needs no new ones; hence a
// parked heap goes on with the backing it had.
Heap* HeapTable::takeParked(Pool& pool, Stream stream) noexcept {
  for (std::size_t i = parked_.size(); i-- > 0;) {
    Heap* const heap = parked_[i];
    if (&heap->backing() != &pool.backing() || !heap->moveTo(pool, stream)) continue;
    parked_.erase(parked_.begin() + std::ptrdiff_t(i));
    return heap;
  }
  return nullptr;
}

// Threads that look at all heaps see a heap as soon as it is made, so that it cannot be taken back:
// making it is the last step that may fail.
Heap& HeapTable::findOrMake(Pool& pool, Stream stream) {
  const MutexLock lock(mutex_);
  if (Heap* there = pool.find(stream)) return *there;
  pool.makeRoom();
  const auto entry = in_pools_.emplace(stream.raw, nullptr);
  try {
    Heap* const parked = takeParked(pool, stream);
    entry->second = parked ? parked : &make(pool, stream);
  } catch (...) {
    in_pools_.erase(entry);
    throw;
  }
  pool.add(*entry->second);
  return *entry->second;
}

// ---- Heaps end ----------------------------------------------------------------------------------

bool HeapTable::park(Heap& heap) noexcept {
  const MutexLock lock(mutex_);
  Pool& pool = heap.pool();
  const Stream stream = heap.stream();
  if (!heap.moveTo(nowhere_, Stream{})) return false;
  pool.remove(heap);
  parked_.push_back(&heap);
  const auto [first, last] = in_pools_.equal_range(stream.raw);
  in_pools_.erase(
      std::find_if(first, last, [&](const auto& entry) { return entry.second == &heap; }));
  return true;
}

void HeapTable::setGone(Stream stream, bool gone) noexcept {
  const MutexLock lock(mutex_);
  const auto set = [gone](Heap& heap) {
    const MutexLock heap_lock(heap.mutex());
    heap.setGone(gone);
    if (gone) const HeldCaches emptied(heap);  // they keep nothing from here on
  };
  if (Heap* const heap = lookUp(stream)) {
    if (heap->gone() != gone) gone ? enlistGone(*heap) : unlistGone(*heap);  // taken or not
    set(*heap);
  }
  const auto [first, last] = in_pools_.equal_range(stream.raw);
  for (auto it = first; it != last; ++it) set(*it->second);
}

void HeapTable::enlistGone(Heap& heap) noexcept {
  heap.setGoneAt(gone_.size());
  gone_.push_back(&heap);
}

void HeapTable::unlistGone(Heap& heap) noexcept {
  const std::size_t at = heap.goneAt();
  heap.setGoneAt(Heap::kNotListed);
  if (at == Heap::kTaken) return;
  gone_[at] = gone_.back();
  if (gone_[at] != &heap) gone_[at]->setGoneAt(at);
  gone_.pop_back();
}

// False when its stream came back meanwhile.
bool HeapTable::enlistTaken(Heap& heap) noexcept {
  const bool still = heap.goneAt() == Heap::kTaken;
  if (still) enlistGone(heap);
  return still;
}

Heap* HeapTable::takeGone() noexcept {
  const MutexLock lock(mutex_);
  if (gone_.empty()) return nullptr;
  next_gone_ = next_gone_ + 1 < gone_.size() ? next_gone_ + 1 : 0;
  Heap* const heap = gone_[next_gone_];
  unlistGone(*heap);
  heap->setGoneAt(Heap::kTaken);
  return heap;
}

void HeapTable::giveGone(Heap& heap) noexcept {
  const MutexLock lock(mutex_);
  (void)enlistTaken(heap);
}

// ---- All of them --------------------------------------------------------------------------------

std::vector<Heap*> HeapTable::all() const {
  const MutexLock lock(mutex_);
  std::vector<Heap*> heaps;
  heaps.reserve(heaps_.size());
  for (const auto& heap : heaps_) heaps.push_back(heap.get());
  return heaps;
}

std::size_t HeapTable::hostBytes() const {
  const MutexLock lock(mutex_);
  std::size_t slots = heaps_.capacity() + parked_.capacity() + gone_.capacity();
  for (const auto& one : generations_) slots += one->heaps.size();
  return slots * sizeof(void*) + offering_.hostBytes();
}

}  // namespace cistern
