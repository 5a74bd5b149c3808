#include "pools/pool_users.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "allocator/base/steps.hpp"

namespace cistern {

void refusePool(const char* verb, MempoolId_t id, const std::string& why) {
  throw PoolError(fmt::format("{}: pool {} {}", verb, poolName(id), why));
}

void refuseLending(const char* verb, MempoolId_t id) {
  refusePool(verb, id, "lies in host memory, and the default pool takes none of that");
}

// ---- Users -------------------------------------------------------------------------------------

void PoolUsers::add(const char* verb, MempoolId_t id, const PoolTraits& traits, LetGoBy by) {
  const MutexLock lock(mutex);
  if (id == MempoolId_t{}) refusePool(verb, id, "is the default pool");
  const auto found = pools_.find(id);
  if (found != pools_.end()) (void)live(verb, id);
  if (found == pools_.end() && traits.location == Location::kHost)
    requireHostPages(verb, id, traits);
  if (found == pools_.end() && traits.one_handle && traits.source != nullptr)
    refusePool(verb, id,
               "has a SegmentSource, which decides by itself what a handle is: one_handle");
  ++(found != pools_.end() ? found->second : open(id, traits)).usesOf(by);
}

// The driver itself is tried at the first request.
void PoolUsers::requireHostPages(const char* verb, MempoolId_t id, const PoolTraits& traits) const {
  const auto refuse = [&](const char* why) {
    refusePool(verb, id, std::string("cannot lie in host memory: ") + why);
  };
  if (traits.needsSegments())
    refuse("it has a SegmentSource, no_split or one_handle, which need segments");
  if (!engine_.device.virtualMemory().host_pages)
    refuse("this device makes no pages of host memory");
  if (!engine_.default_pool.onPages()) refuse("the allocator's memory comes in segments");
}

UsedPool& PoolUsers::open(MempoolId_t id, const PoolTraits& traits) {
  const std::size_t releases = released_.size() + pools_.size() + 1;
  if (released_.capacity() < releases) released_.reserve(2 * releases);
  const auto made = pools_.emplace(id, UsedPool{.pool = nullptr, .own = {id}, .self = {}}).first;
  UsedPool& opened = made->second;
  opened.self = opened.own.begin();
  try {
    PoolTraits own = traits;
    own.no_split |= own.one_handle;
    if (own.one_handle && engine_.default_pool.onPages())
      own.source = virtualSegments(engine_.device);
    opened.pool = &engine_.pools.open(id, own);
  } catch (...) {
    pools_.erase(made);
    throw;
  }
  return opened;
}

void PoolUsers::drop(MempoolId_t id, LetGoBy by) noexcept {
  UsedPool& of = pools_.at(id);
  --of.usesOf(by);
  if (of.uses() > 0) return;
  draining_ids_.splice(draining_ids_.begin(), of.own);
  engine_.pools.drain(*of.pool);
  released_.push_back(id);
  engine_.hooks.untidy += 2;  // it drains, and observers are to be told
}

// ---- Looking up --------------------------------------------------------------------------------

const UsedPool& PoolUsers::find(const char* verb, MempoolId_t id) const {
  const auto it = pools_.find(id);
  if (it == pools_.end()) refusePool(verb, id, "is not there: it was never made, or is gone");
  return it->second;
}

Pool& PoolUsers::live(const char* verb, MempoolId_t id) const {
  const UsedPool& found = find(verb, id);
  if (found.uses() == 0) refusePool(verb, id, "is draining: its last user has let go");
  return *found.pool;
}

PoolUsers::Visit PoolUsers::visit(const char* verb, MempoolId_t id) const {
  const MutexLock lock(mutex);
  return Visit(*find(verb, id).pool);
}

PoolUsers::Visit PoolUsers::visitLive(const char* verb, MempoolId_t id) const {
  const MutexLock lock(mutex);
  return Visit(live(verb, id));
}

// ---- Pools without users -----------------------------------------------------------------------

void PoolUsers::tellReleased() noexcept {
  while (true) {
    MempoolId_t id;
    {
      const MutexLock lock(mutex);
      if (told_ == released_.size()) return;
      id = released_[told_++];
      if (told_ == released_.size()) released_.clear(), told_ = 0;
      --engine_.hooks.untidy;
    }
    engine_.hooks.pool_released(id);
  }
}

// All that may throw comes before the first is closed.
std::vector<PoolTraits> PoolUsers::closeDrained(std::size_t looks) {
  looks = std::min(looks, draining_ids_.size());
  noteSteps(looks);
  std::vector<PoolTraits> traits;
  traits.reserve(looks);
  for (; looks > 0; --looks) {
    const auto id = draining_ids_.begin();
    std::optional<PoolTraits> closed = engine_.pools.close(*pools_.at(*id).pool);
    if (!closed) {
      draining_ids_.splice(draining_ids_.end(), draining_ids_, id);
      continue;
    }
    traits.push_back(std::move(*closed));
    pools_.erase(*id);
    draining_ids_.erase(id);
    --engine_.hooks.untidy;
  }
  return traits;
}

bool PoolUsers::knows(MempoolId_t id) const noexcept {
  const MutexLock lock(mutex);
  return pools_.contains(id);
}

std::vector<MempoolId_t> PoolUsers::drainingNext(std::size_t looks) const {
  const MutexLock lock(mutex);
  const auto count = std::ptrdiff_t(std::min(looks, draining_ids_.size()));
  return {draining_ids_.begin(), std::next(draining_ids_.begin(), count)};
}

void PoolUsers::lookFirstAt(MempoolId_t id) noexcept {
  const MutexLock lock(mutex);
  const auto it = pools_.find(id);
  if (it != pools_.end() && it->second.uses() == 0)
    draining_ids_.splice(draining_ids_.begin(), draining_ids_, it->second.self);
}

}  // namespace cistern
