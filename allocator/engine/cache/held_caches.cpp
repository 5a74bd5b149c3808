#include "allocator/engine/cache/held_caches.hpp"

#include "allocator/engine/cache/thread_cache.hpp"

namespace cistern {

// The calling thread is not in its own caches now. Those that nobody owns are empty.
template <class Visit>
static void forEachOther(std::span<Heap* const> heaps, Visit visit) CISTERN_NO_TSA {
  for (Heap* heap : heaps) {
    for (ThreadCache* cache : heap->caches) {
      if (cache->isOpen() && !cache->isMine()) visit(cache->gate());
    }
  }
}

void HeldCaches::hold() noexcept CISTERN_NO_TSA {
  bool closed = false;
  forEachOther(heaps_, [&](BiasedGate& gate) {
    gate.close();
    closed = true;
  });
  if (closed) BiasedGate::barrier();
  forEachOther(heaps_, [](BiasedGate& gate) { gate.awaitOwner(); });
  for (Heap* heap : heaps_) {
    for (ThreadCache* cache : heap->caches) {
      any_ |= cache->keepsAny();
      cache->flush();
    }
  }
}

HeldCaches::~HeldCaches() {
  forEachOther(heaps_, [](BiasedGate& gate) { gate.open(); });
}

void setCachesShut(Heap& heap, bool shut) noexcept CISTERN_NO_TSA {
  const HeldCaches emptied(heap);
  for (ThreadCache* cache : heap.caches) cache->setShut(shut);
}

void followHeap(Heap& heap) noexcept CISTERN_NO_TSA {
  for (ThreadCache* cache : heap.caches) cache->follow(heap.stream());
  setCachesShut(heap, false);
}

}  // namespace cistern
