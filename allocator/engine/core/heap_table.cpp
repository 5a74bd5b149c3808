#include "allocator/engine/core/heap_table.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "allocator/base/check.hpp"
#include "allocator/base/steps.hpp"
#include "allocator/engine/cache/thread_cache.hpp"

namespace cistern {
HeapTable::HeapTable(Pool& default_pool, Totals& totals)
    : default_pool_(default_pool),
      totals_(totals),
      nowhere_(false, default_pool.rules(), MemoryKind::kSegments) {
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
    if (heap->stream() == stream) return heap->isFor(stream) ? heap : nullptr;
  }
}

void HeapTable::fill(Slots& slots, Heap* heap) noexcept {
  const std::size_t mask = slots.size() - 1;
  std::size_t i = hashOf(heap->stream()) & mask;
  while (slots[i].load(std::memory_order_relaxed) != nullptr) i = (i + 1) & mask;
  slots[i].store(heap, std::memory_order_release);
}

// Makes sure that one more heap finds a slot. Slots of streams that heaps have left are dropped now
// and then, in another table of that size.
void HeapTable::makeRoom() {
  const Slots* const now = slots_.load(std::memory_order_relaxed);
  if ((used_slots_ + 1) * 2 <= now->size()) return;
  std::vector<Heap*> heaps = default_pool_.heaps();
  std::erase_if(heaps, [](const Heap* heap) { return heap->overflow(); });
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

// If there are other streams, they will look for memory in the heap. A stream that is used once
// frees all that it has before anybody does.
Heap& HeapTable::make(Pool& pool, Stream stream, bool overflow) {
  auto heap = std::make_unique<Heap>(pool, stream, pool.heapOptions(overflow), totals_);
  Heap& made = *heap;
  const MutexLock heap_lock(made.mutex());
  made.observe(observer_);
  const MutexLock lock(list_mutex_);
  const std::size_t number = heaps_.size();
  if (number == heaps_.capacity()) heaps_.reserve(2 * number + 1);
  forgotten_.reserve(heaps_.capacity());
  offering_.resize(number);  // what came of an attempt that failed goes
  offering_.push_back(1);
  by_stream_.emplace(std::pair(stream.raw, number), &made);  // the last that may throw
  heaps_.push_back(std::move(heap));
  made.join(*this, number);
  if (number > 0) made.completion().noteSought();
  return made;
}

// Ranges of addresses stay with a heap, so that one which is used again needs no new ones. Hence a
// parked heap goes on with the backing it had. A heap of the default pool's stays that, as slots
// and caches name it.
Heap* HeapTable::takeParked(Pool& pool, Stream stream, bool overflow) noexcept {
  for (auto it = by_stream_.lower_bound({Heap::kNobodys.raw, 0}); it != by_stream_.end(); ++it) {
    Heap* const heap = it->second;
    noteSteps(1);
    const bool alike =
        heap->pool().isDefault() == pool.isDefault() && heap->memory() == pool.memory(overflow);
    if (alike && move(*heap, pool, stream)) return heap;
  }
  return nullptr;
}

// Threads that look at all heaps see a heap as soon as it is made, so it cannot be taken back.
// Making it is the last step that may fail.
Heap& HeapTable::findOrMake(Pool& pool, Stream stream, bool overflow) {
  const MutexLock lock(mutex_);
  const bool in_default = pool.isDefault(), in_slots = in_default && !overflow;
  if (Heap* there = overflow ? pool.heapWith(stream, true) : find(pool, stream)) return *there;
  pool.makeRoom();
  if (in_slots) makeRoom();
  Heap* heap = takeParked(pool, stream, overflow);
  const bool new_here = heap == nullptr || !in_default;
  if (heap == nullptr) heap = &make(pool, stream, overflow);
  if (new_here) pool.add(*heap);
  if (in_slots) fill(*slots_.load(std::memory_order_relaxed), heap);
  used_slots_ += in_slots;
  if (overflow) any_overflow_.store(true, std::memory_order_relaxed);
  return *heap;
}

// Its caches follow it.
bool HeapTable::move(Heap& heap, Pool& to, Stream stream) noexcept {
  const MutexLock lock(heap.mutex());
  const Stream before = heap.stream();
  if (!heap.moveTo(to, stream, to.heapOptions(heap.overflow()))) return false;
  for (ThreadCache* cache : heap.caches()) cache->follow(stream);
  auto entry = by_stream_.extract({before.raw, heap.number()});
  entry.key().first = stream.raw;
  by_stream_.insert(std::move(entry));
  return true;
}

// ---- Heaps end ----------------------------------------------------------------------------------

bool HeapTable::park(Heap& heap) noexcept {
  const MutexLock lock(mutex_);
  Pool& pool = heap.pool();
  const bool in_default = pool.isDefault();
  if (in_default ? !heap.forgotten() : pool.stage() != Pool::Stage::kDraining) return false;
  if (!move(heap, in_default ? pool : nowhere_, Heap::kNobodys)) return false;
  in_default ? void(std::erase(forgotten_, &heap)) : pool.remove(heap);
  return true;
}

void HeapTable::setForgotten(Stream stream, bool forgotten) noexcept {
  const MutexLock lock(mutex_);
  auto it = by_stream_.lower_bound({stream.raw, 0});
  for (; it != by_stream_.end() && it->first.first == stream.raw; ++it) {
    Heap& heap = *it->second;
    if (heap.pool().isDefault() && forgotten != heap.forgotten())
      forgotten ? forgotten_.push_back(&heap) : void(std::erase(forgotten_, &heap));
    const MutexLock heap_lock(heap.mutex());
    heap.setForgotten(forgotten);
    if (forgotten) const HeldCaches emptied(heap);  // they keep nothing from here on
  }
}

Heap* HeapTable::nextForgotten() noexcept {
  const MutexLock lock(mutex_);
  if (forgotten_.empty()) return nullptr;
  next_forgotten_ = next_forgotten_ + 1 < forgotten_.size() ? next_forgotten_ + 1 : 0;
  return forgotten_[next_forgotten_];
}

// Heaps come first: a request goes by its pool, and its heap must be able to do what that says.
// None is made meanwhile.
void HeapTable::leavePages(const std::vector<Pool*>& pools, const SizeRules& rules) {
  const MutexLock lock(mutex_);
  for (Heap* heap : all()) {
    const MutexLock heap_lock(heap->mutex());
    if (heap->memory() == MemoryKind::kPages)
      heap->leavePages(heapOptionsOf(rules, MemoryKind::kSegments));
  }
  for (Pool* pool : pools) {
    if (pool->memory() == MemoryKind::kPages) pool->leavePages(rules);
  }
}

// ---- All of them --------------------------------------------------------------------------------

std::vector<Heap*> HeapTable::all() const {
  const MutexLock lock(list_mutex_);
  std::vector<Heap*> heaps(heaps_.size());
  std::ranges::transform(heaps_, heaps.begin(), [](const auto& heap) { return heap.get(); });
  return heaps;
}

Heap* HeapTable::nextOffering(Search& search) const noexcept {
  const bool in_default = search.taker.isDefault();
  noteSteps(1);
  while (Heap* const own = in_default ? nullptr : search.taker.heapAt(search.own)) {
    ++search.own;
    if (offers(*own)) return own;
  }
  const MutexLock lock(list_mutex_);
  while (search.number < heaps_.size()) {
    const std::uint8_t* const all = offering_.data();
    const void* const found = std::memchr(all + search.number, 1, heaps_.size() - search.number);
    if (found == nullptr) return nullptr;
    Heap& heap = *heaps_[std::size_t(static_cast<const std::uint8_t*>(found) - all)];
    search.number = heap.number() + 1;
    if (reaches(search, heap.pool())) return &heap;
  }
  return nullptr;
}

std::size_t HeapTable::hostBytes() const {
  const MutexLock lock(mutex_);
  std::size_t slots = forgotten_.capacity();
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

}  // namespace cistern
