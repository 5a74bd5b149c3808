#include "interop/preload/served/pools.hpp"

#include <atomic>

namespace cistern::preload {
namespace {

// A bit for each device whose current pool is not its default one.
std::atomic<std::uint64_t> changed{0};

std::uint64_t bitOf(CUdevice device) { return std::uint64_t{1} << (unsigned(device) % 64); }

CUmemoryPool defaultPoolOf(CUdevice device) noexcept {
  CUmemoryPool pool = nullptr;
  if (driver()->cuDeviceGetDefaultMemPool == nullptr ||
      driver()->cuDeviceGetDefaultMemPool(&pool, device) != CUDA_SUCCESS) {
    return nullptr;
  }
  return pool;
}

}  // namespace

bool isDefaultPool(CUmemoryPool pool) noexcept {
  CUdevice device = 0;
  return driver()->cuCtxGetDevice(&device) == CUDA_SUCCESS && pool == defaultPoolOf(device);
}

bool defaultPoolIsCurrent() noexcept {
  const std::uint64_t now = changed.load(std::memory_order_relaxed);
  if (now == 0) return true;
  CUdevice device = 0;
  return driver()->cuCtxGetDevice(&device) == CUDA_SUCCESS && (now & bitOf(device)) == 0;
}

void currentPoolIs(CUdevice device, CUmemoryPool pool) noexcept {
  if (pool == defaultPoolOf(device)) {
    changed &= ~bitOf(device);
  } else {
    changed |= bitOf(device);
  }
}

}  // namespace cistern::preload
