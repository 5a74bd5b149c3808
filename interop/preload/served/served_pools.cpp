#include "interop/preload/served/served_pools.hpp"

#include <algorithm>
#include <new>

#include "allocator/engine/exchange/exchange.hpp"

namespace cistern::preload::GPU_NAMESPACE {
namespace {

constexpr int kMostDevices = 64;

// A bit for each device: whose current pool the program has set; whose default pool is the
// driver's.
std::atomic<std::uint64_t> set{0};
std::atomic<std::uint64_t> left{0};

std::uint64_t bitOf(int device) { return std::uint64_t{1} << (unsigned(device) % kMostDevices); }

PoolHandle poolOf(int device, Code (Functions::*which)(PoolHandle*, int) const noexcept) noexcept {
  PoolHandle pool = nullptr;
  if (!driver()->hasPools() || (driver()->*which)(&pool, device) != kSuccess) return nullptr;
  return pool;
}
PoolHandle defaultPoolOf(int device) noexcept { return poolOf(device, &Functions::defaultPool); }
PoolHandle currentPoolOf(int device) noexcept { return poolOf(device, &Functions::currentPool); }

}  // namespace

bool isDefaultPool(PoolHandle pool) noexcept {
  int device = 0;
  if (driver()->currentDevice(&device) != kSuccess || (left & bitOf(device)) != 0) return false;
  return pool == defaultPoolOf(device);
}

bool defaultPoolIsCurrent() noexcept {
  const std::uint64_t changed = set | left;
  if (changed == 0) return true;
  int device = 0;
  if (driver()->currentDevice(&device) != kSuccess || (left & bitOf(device)) != 0) return false;
  return (changed & bitOf(device)) == 0 || currentPoolOf(device) == defaultPoolOf(device);
}

void currentPoolChanges(int device) noexcept { set |= bitOf(device); }

void accessChanges(PoolHandle pool, const PoolAccess* access, std::size_t count) noexcept {
  const std::optional<int> own = deviceOfDefault(pool);
  if (!own) return;
  const auto is_others = [&](const PoolAccess& allowed) {
    const bool own_device = allowed.location.type == kOfDevice && allowed.location.id == *own;
    return !own_device && allowed.flags != kNoAccess;
  };
  if (std::any_of(access, access + count, is_others)) left |= bitOf(*own);
}

std::optional<int> deviceOfDefault(PoolHandle pool) noexcept {
  for (int device = 0; device < kMostDevices && pool != nullptr; ++device) {
    const PoolHandle of_device = defaultPoolOf(device);
    if (of_device == nullptr) return std::nullopt;
    if (of_device == pool) return device;
  }
  return std::nullopt;
}

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
