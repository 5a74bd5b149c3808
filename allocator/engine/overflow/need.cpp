#include "allocator/engine/overflow/need.hpp"

#include <algorithm>

namespace cistern {

// Free blocks that threads' caches keep count as in use there.
std::uint64_t takePeak(Engine& engine, StatSums::Reader reader) {
  const std::uint64_t peak = engine.totals.takePeak(reader);
  std::uint64_t elsewhere = 0;
  for (Heap* heap : engine.heaps.all()) {
    if (pagesOf(*heap) != PageKind::kHost && !heap->pool().asleep) continue;
    const MutexLock lock(heap->mutex());
    elsewhere += heap->busyBytes();
  }
  return peak - std::min(peak, elsewhere);
}

std::uint64_t capacityOf(Engine& engine) {
  const Result<MemoryInfo> info = engine.device.memoryInfo();
  const std::uint64_t free = info ? info.value().free_bytes : 0;
  return engine.limit.reserved() + std::min(engine.limit.left(), free);
}

}  // namespace cistern
