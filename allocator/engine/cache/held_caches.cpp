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

void HeldCaches::hold(std::span<Heap* const> heaps) noexcept CISTERN_NO_TSA {
  bool closed = false;
  forEachOther(heaps, [&](BiasedGate& gate) {
    gate.close();
    closed = true;
  });
  if (closed) BiasedGate::barrier();
  others_ |= closed;
  forEachOther(heaps, [](BiasedGate& gate) { gate.awaitOwner(); });
  for (Heap* heap : heaps) {
    heap->forgetCached();
    for (ThreadCache* cache : heap->caches) {
      any_ |= cache->keepsAny();
      what_ == Caches::kEmptied ? cache->putBackAll() : cache->countAll();
    }
  }
}

void HeldCaches::extend(std::span<Heap* const> heaps) noexcept {
  const auto more = heaps.subspan(heaps_.size());
  heaps_ = heaps;
  hold(more);
}

void setCachesShut(Heap& heap, bool shut) noexcept CISTERN_NO_TSA {
  bool any = false;
  for (ThreadCache* cache : heap.caches) any |= cache->setShut(shut);
  if (!any || !shut) return;
  BiasedGate::barrier();
  for (ThreadCache* cache : heap.caches) {
    cache->gate().awaitOwner();
    cache->putBackAll();
  }
}

HeldCaches::~HeldCaches() {
  forEachOther(heaps_, [](BiasedGate& gate) { gate.open(); });
}

bool restCaches(Heap& heap) noexcept CISTERN_NO_TSA {
  for (const ThreadCache* cache : heap.caches) {
    if (cache->keepsAny()) return false;
  }
  for (ThreadCache* cache : heap.caches) (void)cache->setShut(true);
  bool empty = true;
  for (ThreadCache* cache : heap.caches) empty &= cache->refuseReturns();
  if (!empty) wakeCaches(heap);
  return empty;
}

void wakeCaches(Heap& heap) noexcept CISTERN_NO_TSA {
  for (ThreadCache* cache : heap.caches) {
    cache->acceptReturns();
    (void)cache->setShut(heap.gone());
  }
}

void followHeap(Heap& heap) noexcept CISTERN_NO_TSA {
  for (ThreadCache* cache : heap.caches) cache->follow(heap.stream());
  setCachesShut(heap, false);
}

}  // namespace cistern
