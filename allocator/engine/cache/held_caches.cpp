#include "allocator/engine/cache/held_caches.hpp"

#include "allocator/engine/cache/thread_cache.hpp"

namespace cistern {

// The calling thread is not in its own caches now. Those that nobody owns are empty.
template <class Visit>
static void forEachOther(std::span<Heap* const> heaps, Visit visit) {
  for (Heap* heap : heaps) {
    heap->mutex().assertHeld();
    for (ThreadCache* cache : heap->caches()) {
      if (cache->owner().isOpen() && !cache->owner().isMine()) visit(cache->owner().gate());
    }
  }
}

void HeldCaches::hold() noexcept {
  BiasedGate::closeAll([&](auto visit) { forEachOther(heaps_, visit); });
  for (Heap* heap : heaps_) {
    heap->mutex().assertHeld();
    for (ThreadCache* cache : heap->caches()) {
      any_ |= cache->keepsAny();
      cache->flush();
    }
  }
}

HeldCaches::~HeldCaches() {
  forEachOther(heaps_, [](BiasedGate& gate) { gate.open(); });
}

void setCachesShut(Heap& heap, bool shut) noexcept {
  const HeldCaches emptied(heap);
  for (ThreadCache* cache : heap.caches()) cache->blocks().setShut(shut);
}

void followHeap(Heap& heap) noexcept {
  for (ThreadCache* cache : heap.caches()) cache->follow(heap.stream());
  setCachesShut(heap, false);
}

}  // namespace cistern
