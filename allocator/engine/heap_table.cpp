#include "allocator/engine/heap_table.hpp"

#include "allocator/engine/cache/held_caches.hpp"

namespace cistern {
namespace {

std::uint64_t nextNumber() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

thread_local HeapTable::Remembered HeapTable::remembered_[4];

HeapTable::HeapTable(Pool& default_pool, std::size_t free_log)
    : default_pool_(default_pool),
      free_log_(free_log),
      answers_(nextNumber()),
      nowhere_(false, default_pool.rules(), default_pool.onPages()) {
  generations_.push_back(std::make_unique<Slots>(16));
  slots_.store(generations_.back().get(), std::memory_order_release);
}

Heap* HeapTable::find(Stream stream) const noexcept {
  const std::size_t hash = hashOf(stream);
  Remembered& last = remembered_[hash % 4];
  const std::uint64_t answers = answers_.load(std::memory_order_relaxed);
  if (last.answers == answers && last.stream == stream) return last.heap;
  const Slots& slots = *slots_.load(std::memory_order_acquire);
  const std::size_t mask = slots.heaps.size() - 1;
  for (std::size_t i = hash & mask;; i = (i + 1) & mask) {
    Heap* heap = slots.heaps[i].load(std::memory_order_acquire);
    if (heap == nullptr) return nullptr;
    if (heap->stream() != stream) continue;
    if (heap->gone()) return nullptr;
    last = {answers, stream, heap};
    return heap;
  }
}

void HeapTable::place(Slots& slots, Heap* heap) noexcept {
  const std::size_t mask = slots.heaps.size() - 1;
  std::size_t i = hashOf(heap->stream()) & mask;
  while (slots.heaps[i].load(std::memory_order_relaxed) != nullptr) i = (i + 1) & mask;
  slots.heaps[i].store(heap, std::memory_order_release);
}

void HeapTable::growFor(std::size_t heaps) {
  const Slots& now = *generations_.back();
  if (heaps * 2 <= now.heaps.size()) return;
  auto bigger = std::make_unique<Slots>(now.heaps.size() * 2);
  for (const auto& heap : heaps_) {
    if (&heap->pool() == &default_pool_) place(*bigger, heap.get());
  }
  generations_.push_back(std::move(bigger));
  slots_.store(generations_.back().get(), std::memory_order_release);
}

Heap& HeapTable::make(Pool& pool, Stream stream) {
  heaps_.push_back(std::make_unique<Heap>(pool, stream, free_log_));
  try {
    parked_.reserve(heaps_.capacity());
  } catch (...) {
    heaps_.pop_back();
    throw;
  }
  ++changes_;
  return *heaps_.back();
}

Heap& HeapTable::findOrMake(Stream stream) {
  if (Heap* there = find(stream)) return *there;
  const MutexLock lock(mutex_);
  if (Heap* there = find(stream)) return *there;  // another thread made it meanwhile
  growFor(placed_ + 1);
  Heap& heap = make(default_pool_, stream);
  place(*generations_.back(), &heap);
  ++placed_;
  return heap;
}

// Ranges of addresses stay with a heap, so that one which is used again needs no new ones; hence a
// parked heap goes on with the backing it had.
Heap* HeapTable::takeParked(Pool& pool, Stream stream) noexcept {
  for (std::size_t i = parked_.size(); i-- > 0;) {
    Heap* const heap = parked_[i];
    if (heap->onPages() != pool.onPages() || !heap->moveTo(pool, stream)) continue;
    parked_.erase(parked_.begin() + std::ptrdiff_t(i));
    return heap;
  }
  return nullptr;
}

Heap& HeapTable::findOrMake(Pool& pool, Stream stream) {
  const MutexLock lock(mutex_);
  if (Heap* there = pool.find(stream)) return *there;
  if (Heap* parked = takeParked(pool, stream)) {
    try {
      pool.add(*parked);
    } catch (...) {
      (void)parked->moveTo(nowhere_, Stream{});
      parked_.push_back(parked);
      throw;
    }
    return *parked;
  }
  Heap& made = make(pool, stream);
  try {
    pool.add(made);
  } catch (...) {
    heaps_.pop_back();
    ++changes_;
    throw;
  }
  return made;
}

bool HeapTable::park(Heap& heap) noexcept {
  const MutexLock lock(mutex_);
  Pool& pool = heap.pool();
  if (!heap.moveTo(nowhere_, Stream{})) return false;
  pool.remove(heap);
  parked_.push_back(&heap);
  return true;
}

void HeapTable::setGone(Stream stream, bool gone) noexcept {
  const MutexLock lock(mutex_);
  for (const auto& heap : heaps_) {
    if (heap->stream() != stream) continue;
    const MutexLock heap_lock(heap->mutex());
    heap->setGone(gone);
    setCachesShut(*heap, gone);
  }
  if (gone) answers_.store(nextNumber(), std::memory_order_relaxed);
}

std::vector<Heap*> HeapTable::all() const {
  std::vector<Heap*> heaps;
  std::uint64_t changes = 0;
  refresh(heaps, changes);
  return heaps;
}

void HeapTable::refresh(std::vector<Heap*>& heaps, std::uint64_t& changes) const {
  if (changes == changes_.load(std::memory_order_acquire)) return;
  const MutexLock lock(mutex_);
  heaps.clear();
  heaps.reserve(heaps_.size());
  for (const auto& heap : heaps_) heaps.push_back(heap.get());
  changes = changes_.load(std::memory_order_relaxed);
}

}  // namespace cistern
