#include "allocator/engine/overflow/need.hpp"

#include <algorithm>

namespace cistern {

// Free blocks that threads' caches keep count as in use there.
std::uint64_t takePeak(Engine& engine) {
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
