#include "interop/preload/served/pool_use.hpp"

#include <algorithm>
#include <new>

#include "allocator/engine/exchange/exchange.hpp"

namespace cistern::preload::GPU_NAMESPACE {

std::vector<Heap*> PoolUse::heaps() const {
  std::vector<Heap*> heaps = engine_.default_pool.heaps();
  std::erase_if(heaps, [](const Heap* heap) { return heap->stream() == Stream{}; });
  return heaps;
}

// If the host is short of memory, a peak is missed.
void PoolUse::noteGrowth() noexcept {
  try {
    (void)bytesNow();
  } catch (const std::bad_alloc&) {
  }
}

PoolBytes PoolUse::bytesNow() {
  seen_ = engine_.now();
  PoolBytes bytes;
  bytes.used = used_;
  bytes.reserved = std::max(reservedBytes(heaps()), bytes.used);
  raise(used_high_, bytes.used);
  raise(reserved_high_, bytes.reserved);
  bytes.used_high = std::max(used_high_.load(), bytes.used);
  bytes.reserved_high = std::max(reserved_high_.load(), bytes.reserved);
  return bytes;
}

void PoolUse::trimTo(std::uint64_t bytes) {
  (void)bytesNow();
  trim(engine_, heaps(), bytes);
}

}  // namespace cistern::preload::GPU_NAMESPACE
