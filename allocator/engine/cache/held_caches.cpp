#include "allocator/engine/cache/held_caches.hpp"

#include "allocator/engine/cache/thread_cache.hpp"

namespace cistern {

// The calling thread is not in its own caches now. Those that nobody owns are empty.
template <class Visit>
void HeldCaches::forEachOther(Visit visit) CISTERN_NO_TSA {
  for (Heap* heap : heaps_) {
    for (ThreadCache* cache : heap->caches) {
      if (cache->isOpen() && !cache->isMine()) visit(cache->gate());
    }
  }
}

void HeldCaches::hold(Caches what) noexcept CISTERN_NO_TSA {
  forEachOther([&](BiasedGate& gate) {
    gate.close();
    others_ = true;
  });
  if (others_) BiasedGate::barrier();
  forEachOther([](BiasedGate& gate) { gate.awaitOwner(); });
  for (Heap* heap : heaps_) {
    heap->forgetCached();
    for (ThreadCache* cache : heap->caches) {
      any_ |= cache->keepsAny();
      what == Caches::kEmptied ? cache->putBackAll() : cache->countAll();
    }
  }
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
  forEachOther([](BiasedGate& gate) { gate.open(); });
}

}  // namespace cistern
