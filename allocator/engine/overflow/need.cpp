// The memory of the device that a program needs.
#include <algorithm>

#include "allocator/engine/engine.hpp"
#include "cistern/allocator.hpp"

namespace cistern {

// Free blocks that threads' caches keep count as in use there.
std::uint64_t CachingAllocator::takePeak() {
  Engine& engine = engine_->here("takePeak");
  const std::uint64_t peak = engine.totals.takePeak();
  std::uint64_t elsewhere = 0;
  for (Heap* heap : engine.heaps.all()) {
    if (pagesOf(*heap) != PageKind::kHost && !heap->pool().asleep) continue;
    const MutexLock lock(heap->mutex());
    elsewhere += heap->busyBytes();
  }
  return peak - std::min(peak, elsewhere);
}

}  // namespace cistern
