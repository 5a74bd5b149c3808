#include "host_pools.hpp"

#include <algorithm>

#include "cistern/error.hpp"

namespace cistern_torch {

// Between its own beginning and that of its capture, only its thread uses a region, and that thread
// is here now. So a region that it has begun, and that is not captured, has failed.
void HostPools::begin(TorchPoolId id, Catches catches, Captured captured) {
  const std::thread::id by = std::this_thread::get_id();
  for (const Region& region : regions()) {
    if ((region.id == id || region.by == by) && !region.captured()) close(region.number);
  }
  const std::lock_guard lock(mutex_);
  const bool open = std::any_of(regions_.begin(), regions_.end(),
                                [&](const Region& region) { return region.id == id; });
  if (open) throw cistern::InvalidArgument("a region of this pool is open for host memory already");
  regions_.push_back({id, std::move(catches), std::move(captured), by, ++last_});
  ++pools_[id].users;
  open_ = int(regions_.size());
}

void HostPools::close(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto region = std::find_if(regions_.begin(), regions_.end(),
                                   [&](const Region& open) { return open.number == number; });
  if (region == regions_.end()) return;
  const TorchPoolId id = region->id;
  regions_.erase(region);
  open_ = int(regions_.size());
  if (pools_.count(id) != 0) letGo(id);
}

void HostPools::end(TorchPoolId id) {
  const std::lock_guard lock(mutex_);
  const auto region = std::find_if(regions_.begin(), regions_.end(),
                                   [&](const Region& open) { return open.id == id; });
  if (region == regions_.end())
    throw cistern::InvalidArgument("no region of this pool is open for host memory");
  regions_.erase(region);
  open_ = int(regions_.size());
}

void HostPools::release(TorchPoolId id) {
  const std::lock_guard lock(mutex_);
  if (pools_.count(id) == 0)
    throw cistern::InvalidArgument("this pool has no user to let go of host memory");
  letGo(id);
}

void HostPools::letGo(TorchPoolId id) {
  const auto pool = pools_.find(id);
  if (pool->second.users > 1) {
    --pool->second.users;
    return;
  }
  resting_.merge(pool->second.kept);
  resting_.merge(pool->second.unused);
  std::erase_if(blocks_, [&](const auto& block) { return block.second.pool == id; });
  pools_.erase(pool);
}

// A region's question may call any function of PyTorch, so no lock is held meanwhile.
std::vector<HostPools::Region> HostPools::regions() const {
  if (open_.load(std::memory_order_acquire) == 0) return {};
  const std::lock_guard lock(mutex_);
  return regions_;
}

TorchPoolId HostPools::now() const {
  const std::vector<Region> open = regions();
  const auto caught = std::find_if(open.begin(), open.end(), [](const Region& region) {
    return region.captured() && region.catches();
  });
  return caught == open.end() ? TorchPoolId{0, 0} : caught->id;
}

bool HostPools::anyCaptured() const {
  const std::vector<Region> open = regions();
  return std::any_of(open.begin(), open.end(),
                     [](const Region& region) { return region.captured(); });
}

void HostPools::allocated(void* block, TorchPoolId id, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto pool = pools_.find(id);
  if (pool == pools_.end()) return;
  blocks_[block] = {id, bytes};
  any_ = true;
}

void* HostPools::take(TorchPoolId id, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  const auto pool = pools_.find(id);
  if (pool == pools_.end()) return nullptr;
  Blocks& unused = pool->second.unused;
  auto best = unused.end();
  for (auto it = unused.begin(); it != unused.end(); ++it) {
    if (it->second.bytes < bytes) continue;
    if (best == unused.end() || it->second.bytes < best->second.bytes) best = it;
  }
  if (best == unused.end()) return nullptr;
  return blocks_.insert(unused.extract(best)).position->first;
}

void HostPools::used(void* block) noexcept {
  if (!any_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  const auto of = blocks_.find(block);
  if (of != blocks_.end()) of->second.used = true;
}

HostPools::Standing HostPools::standingOf(void* block) const {
  if (!any_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(mutex_);
  const auto held = blocks_.find(block);
  if (held != blocks_.end()) return {held->second.pool, false};
  for (const auto& [id, pool] : pools_) {
    if (pool.kept.count(block) + pool.unused.count(block) != 0) return {id, true};
  }
  const auto resting = resting_.find(block);
  return resting == resting_.end() ? Standing{} : Standing{resting->second.pool, true};
}

bool HostPools::freed(void* block) {
  if (!any_.load(std::memory_order_acquire)) return false;
  const std::lock_guard lock(mutex_);
  const auto of = blocks_.find(block);
  if (of == blocks_.end()) return false;
  Pool& pool = pools_.at(of->second.pool);
  Blocks& to = of->second.used ? pool.kept : pool.unused;
  to.insert(blocks_.extract(of));  // no memory is needed for it: a free cannot fail
  return true;
}

HostPools::Blocks HostPools::takeResting() {
  const std::lock_guard lock(mutex_);
  return std::exchange(resting_, {});
}

void HostPools::putBack(Blocks blocks) {
  const std::lock_guard lock(mutex_);
  resting_.merge(blocks);
}

}  // namespace cistern_torch
