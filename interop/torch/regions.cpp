// Regions whose requests go to a pool: captures and scopes.
#include <algorithm>
#include <utility>

#include "cistern/device.hpp"
#include "torch_pools.hpp"

namespace cistern_torch {

void TorchPools::begin(TorchPoolId id, Filter filter, std::optional<CUstream_st*> on) {
  const std::lock_guard lock(mutex_);
  findOver();
  Region region;
  region.id = id;
  region.filter = std::move(filter);
  region.on = on;
  add(std::move(region));
}

// A region that waits and is no scope may be one of a capture that has failed.
void TorchPools::beginScope(TorchPoolId id, Filter filter, CUstream_st* on) {
  const std::lock_guard lock(mutex_);
  findOver();
  for (Region& open : regions_) {
    if (open.id != id || open.kind == Kind::kOver) continue;
    if (open.scope || open.kind != Kind::kWaiting || captured(open))
      throw cistern::PoolError("beginAllocateToPool: already recording to mempool_id " +
                               cistern::poolName({id.first, id.second}));
  }
  Region region;
  region.id = id;
  region.filter = std::move(filter);
  region.on = on;
  region.scope = true;
  add(std::move(region));
}

// Pre: mutex_ is held, and findOver was called.
void TorchPools::add(Region region) {
  const TorchPoolId id = region.id;
  ++pool(id).uses;
  const auto failed = std::find_if(regions_.begin(), regions_.end(), [&](const Region& open) {
    return open.id == id && open.kind == Kind::kOver;
  });
  if (failed != regions_.end()) {
    if (failed->counts) --table_[id].uses;
    regions_.erase(failed);
  }
  region.by = std::this_thread::get_id();
  regions_.push_back(std::move(region));
  countOpen();
}

void TorchPools::end(TorchPoolId id) {
  const std::lock_guard lock(mutex_);
  const auto last = std::find_if(regions_.rbegin(), regions_.rend(),
                                 [&](const Region& region) { return region.id == id; });
  if (last == regions_.rend())
    throw cistern::PoolError("endAllocateToPool: no region of this pool is open");
  Region region = std::move(*last);
  regions_.erase(std::next(last).base());
  countOpen();
  Pool& pool = table_[id];
  if (region.memory != nullptr) {
    if (region.kind == Kind::kCapture) region.memory->captureEnd();
    pool.graphs.push_back(std::move(region.memory));
  } else if (region.kind == Kind::kScope) {
    pools_.endAllocateToPool(pool.id);
    pools_.releasePool(pool.id);
  }
  noteReserved(id);
}

void TorchPools::countOpen() {
  const auto open = std::count_if(regions_.begin(), regions_.end(),
                                  [](const Region& region) { return region.kind != Kind::kOver; });
  open_.store(int(open), std::memory_order_release);
}

// ---- Captures that are over ---------------------------------------------------------------------

// Whether it is, or may be, in a capture: a device that does not say, does not say no. A graph
// begins its region right before the capture. So if its stream is not captured when its thread
// comes by again, its capture is no longer to come.
bool TorchPools::captured(Region& region) {
  if (region.eager) return false;
  if (!region.on) return true;
  const auto info = pools_.device().captureInfo(*region.on);
  if (!info.ok()) return true;
  const cistern::CaptureStatus status = info.value().status;
  if (status == cistern::CaptureStatus::kInvalidated) return true;  // until it is ended
  const bool any = status != cistern::CaptureStatus::kNone;
  region.eager = !any && region.kind == Kind::kWaiting && region.by == std::this_thread::get_id();
  return any && (region.capture == 0 || info.value().id == region.capture);
}

// The capture `but` is known to be active. This calls captured() on waiting regions, which notes
// what it learns of them.
void TorchPools::findOver(std::uint64_t but) {
  for (Region& region : regions_) {
    if (region.kind == Kind::kWaiting) (void)captured(region);
    if (region.kind != Kind::kCapture || region.capture == but || captured(region)) continue;
    region.memory->captureEnd();
    region.kind = Kind::kOver;
  }
  countOpen();
}

// A region that waits may be a capture that has allocated nothing yet.
bool TorchPools::mayCapture() {
  findOver();
  return std::any_of(regions_.begin(), regions_.end(), [&](Region& region) {
    return region.kind == Kind::kCapture || (region.kind == Kind::kWaiting && captured(region));
  });
}

// The caller handles the users that they count.
void TorchPools::closeRegions(const std::function<bool(const Region&)>& which) {
  for (Region& region : regions_) {
    if (!which(region) || region.kind != Kind::kScope) continue;
    const cistern::MempoolId_t pool = table_[region.id].id;
    pools_.endAllocateToPool(pool);
    pools_.releasePool(pool);
  }
  std::erase_if(regions_, which);
  countOpen();
}

void TorchPools::closeOver() {
  findOver();
  const auto failed = [by = std::this_thread::get_id()](const Region& region) {
    return region.kind == Kind::kOver && region.by == by;
  };
  std::vector<TorchPoolId> users;
  for (const Region& region : regions_) {
    if (failed(region) && region.counts) users.push_back(region.id);
  }
  closeRegions(failed);
  for (const TorchPoolId& id : users) letGoOf(table_[id]);
}

// ---- Opening ------------------------------------------------------------------------------------

void TorchPools::openFor(CUstream_st* stream) {
  const std::lock_guard lock(mutex_);
  const auto info = pools_.device().captureInfo(stream);
  const bool active = info.ok() && info.value().status == cistern::CaptureStatus::kActive;
  findOver(active ? info.value().id : 0);
  if (active)
    openCapture(stream, info.value().id);
  else
    openScope(stream);
}

// The region that began first counts: a graph begins its own before anything is allocated in the
// capture. One that is a scope already was not made for this capture. Regions whose stream is not
// captured come last: their captures may have failed, or they were made for no graph.
void TorchPools::openCapture(CUstream_st* stream, std::uint64_t capture) {
  for (const Region& region : regions_) {
    if (region.kind == Kind::kCapture && region.capture == capture) return;
  }
  for (const bool of_graph : {true, false}) {
    for (Region& region : regions_) {
      if (region.kind != Kind::kWaiting || captured(region) != of_graph) continue;
      if (region.filter(stream)) return beginCapture(region, stream, capture);
    }
  }
}

void TorchPools::beginCapture(Region& region, CUstream_st* stream, std::uint64_t capture) {
  suspendScope(region.id);
  auto memory = std::make_unique<cistern::GraphMemory>(pools_);
  memory->captureBegin(stream, table_[region.id].id);
  region.memory = std::move(memory);
  region.kind = Kind::kCapture;
  region.capture = capture;
  region.eager = false;
  if (!region.on || !captured(region)) region.on = stream;
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
    const bool eager = region->kind == Kind::kWaiting || region->kind == Kind::kScope;
    if (!eager || !region->filter(stream)) continue;
    if (region->kind == Kind::kScope) return;
    const bool busy = std::any_of(regions_.begin(), regions_.end(), [&](const Region& other) {
      return other.id == region->id && (other.kind == Kind::kScope || other.kind == Kind::kCapture);
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
