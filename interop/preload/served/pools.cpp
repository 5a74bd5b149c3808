#include "interop/preload/served/pools.hpp"

#include <atomic>

namespace cistern::preload::GPU_NAMESPACE {
namespace {

// A bit for each device whose current pool is not its default one.
std::atomic<std::uint64_t> changed{0};

std::uint64_t bitOf(int device) { return std::uint64_t{1} << (unsigned(device) % 64); }

PoolHandle defaultPoolOf(int device) noexcept {
  PoolHandle pool = nullptr;
  if (!driver()->hasPools() || driver()->defaultPool(&pool, device) != kSuccess) {
    return nullptr;
  }
  return pool;
}

}  // namespace

bool isDefaultPool(PoolHandle pool) noexcept {
  int device = 0;
  return driver()->currentDevice(&device) == kSuccess && pool == defaultPoolOf(device);
}

bool defaultPoolIsCurrent() noexcept {
  const std::uint64_t now = changed.load(std::memory_order_relaxed);
  if (now == 0) return true;
  int device = 0;
  return driver()->currentDevice(&device) == kSuccess && (now & bitOf(device)) == 0;
}

void currentPoolIs(int device, PoolHandle pool) noexcept {
  if (pool == defaultPoolOf(device)) {
    changed &= ~bitOf(device);
  } else {
    changed |= bitOf(device);
  }
}

}  // namespace cistern::preload::GPU_NAMESPACE
