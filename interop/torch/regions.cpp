// Regions whose requests go to a pool: captures and scopes.
#include <algorithm>
#include <utility>

#include "cistern/device.hpp"
#include "pools.hpp"

namespace cistern_torch {

void TorchPools::begin(TorchPoolId id, Filter filter) {
  const std::lock_guard lock(mutex_);
  ++pool(id).uses;
  regions_.push_back({id, std::move(filter), Kind::kWaiting, nullptr});
  open_.store(int(regions_.size()), std::memory_order_release);
}

void TorchPools::end(TorchPoolId id) {
  const std::lock_guard lock(mutex_);
  const auto last = std::find_if(regions_.rbegin(), regions_.rend(),
                                 [&](const Region& region) { return region.id == id; });
  if (last == regions_.rend())
    throw cistern::PoolError("endAllocateToPool: no region of this pool is open");
  Region region = std::move(*last);
  regions_.erase(std::next(last).base());
  open_.store(int(regions_.size()), std::memory_order_release);
  Pool& pool = table_[id];
  if (region.kind == Kind::kCapture) {
    region.memory->captureEnd();
    pool.graphs.push_back(std::move(region.memory));
  } else if (region.kind == Kind::kScope) {
    pools_.endAllocateToPool(pool.id);
    pools_.releasePool(pool.id);
  }
}

// A region that waits may be a capture that has allocated nothing yet.
bool TorchPools::mayCapture() const {
  return std::any_of(regions_.begin(), regions_.end(),
                     [](const Region& region) { return region.kind != Kind::kScope; });
}

void TorchPools::openFor(CUstream_st* stream) {
  const std::lock_guard lock(mutex_);
  const auto info = pools_.device().captureInfo(stream);
  if (info.ok() && info.value().status == cistern::CaptureStatus::kActive)
    openCapture(stream);
  else
    openScope(stream);
}

// The region that began first counts: a graph begins its own before anything is allocated in the
// capture. One that is a scope already was not made for this capture.
void TorchPools::openCapture(CUstream_st* stream) {
  for (Region& region : regions_) {
    if (region.kind == Kind::kScope || !region.filter(stream)) continue;
    if (region.kind == Kind::kCapture) return;
    suspendScope(region.id);
    auto memory = std::make_unique<cistern::GraphMemory>(pools_);
    memory->captureBegin(stream, table_[region.id].id);
    region.memory = std::move(memory);
    region.kind = Kind::kCapture;
    return;
  }
}

// A pool is captured into, or has a scope. The scope's region begins anew after the capture.
void TorchPools::suspendScope(TorchPoolId id) {
  for (Region& region : regions_) {
    if (region.id != id || region.kind != Kind::kScope) continue;
    const cistern::MempoolId_t pool = table_[id].id;
    pools_.endAllocateToPool(pool);
    pools_.releasePool(pool);
    region.kind = Kind::kWaiting;
  }
}

// The region that began last counts. Two of one pool are one scope.
void TorchPools::openScope(CUstream_st* stream) {
  for (auto region = regions_.rbegin(); region != regions_.rend(); ++region) {
    if (region->kind == Kind::kCapture || !region->filter(stream)) continue;
    if (region->kind == Kind::kScope) return;
    const bool busy = std::any_of(regions_.begin(), regions_.end(), [&](const Region& other) {
      return other.id == region->id && other.kind != Kind::kWaiting;
    });
    if (busy) return;
    pools_.beginAllocateToPool(table_[region->id].id,
                               cistern::PoolFilter::streams([filter = region->filter](auto asked) {
                                 return filter(reinterpret_cast<CUstream_st*>(asked.raw));
                               }));
    region->kind = Kind::kScope;
    return;
  }
}

}  // namespace cistern_torch
