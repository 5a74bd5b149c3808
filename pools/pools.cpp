#include "pools/pools.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "allocator/base/process.hpp"
#include "pools/captured.hpp"

namespace cistern {

std::string poolName(MempoolId_t id) { return fmt::format("{{{}, {}}}", id.uuid, id.uid); }

Pools::Pools(CachingAllocator& allocator) : allocator_(allocator) {}

Pools::~Pools() {
  allocator_.setRouter(nullptr);
  std::vector<Retirement> retired;
  {
    const MutexLock lock(retired_mutex_);
    retired = std::move(retired_);
  }
  if (!driverMayBeCalled()) return;
  for (Retirement& one : retired) (void)one.wait();
}

// ---- Users -------------------------------------------------------------------------------------

void Pools::refuse(const char* verb, MempoolId_t id, const std::string& why) const {
  throw PoolError(fmt::format("{}: pool {} {}", verb, poolName(id), why));
}

const Pools::Entry& Pools::entry(const char* verb, MempoolId_t id) const {
  const auto it = entries_.find(id);
  if (it == entries_.end()) refuse(verb, id, "is not there: it was never made, or is gone");
  return it->second;
}

Pool& Pools::live(const char* verb, MempoolId_t id) const {
  const Entry& found = entry(verb, id);
  if (found.uses == 0) refuse(verb, id, "is draining: its last user has let go");
  return *found.pool;
}

void Pools::createOrIncrefPool(MempoolId_t id, const PoolTraits& traits) {
  tidy();
  const MutexLock lock(mutex_);
  if (id == MempoolId_t{}) refuse("createOrIncrefPool", id, "is the default pool");
  if (entries_.contains(id)) {
    (void)live("createOrIncrefPool", id);
    ++entries_.at(id).uses;
    return;
  }
  const auto made = entries_.emplace(id, Entry{nullptr, 1}).first;
  try {
    made->second.pool = &allocator_.openPool(id, traits);
  } catch (...) {
    entries_.erase(made);
    throw;
  }
}

void Pools::releasePool(MempoolId_t id) {
  {
    const MutexLock lock(mutex_);
    const Pool& pool = live("releasePool", id);
    if (entries_.at(id).uses == 1 && scopes_.activeOf(pool) > 0) {
      refuse("releasePool", id, "has one user left, for which a scope or capture is active");
    }
  }
  letGo(id);
}

// Pre: the caller is a user.
void Pools::letGo(MempoolId_t id) {
  Pool* last = nullptr;
  {
    const MutexLock lock(mutex_);
    Entry& of = entries_.at(id);
    if (--of.uses == 0) last = of.pool;
  }
  if (last) allocator_.drainPool(*last);
  tidy();
}

int Pools::getPoolUseCount(MempoolId_t id) const {
  const MutexLock lock(mutex_);
  return entry("getPoolUseCount", id).uses;
}

// Lets go of what nothing uses any more.
void Pools::tidy() {
  std::vector<Retirement> complete;
  {
    const MutexLock lock(retired_mutex_);
    for (std::size_t i = retired_.size(); i-- > 0;) {
      if (!retired_[i].complete()) continue;
      complete.push_back(std::move(retired_[i]));
      retired_.erase(retired_.begin() + std::ptrdiff_t(i));
    }
  }
  complete.clear();  // which may release pools
  const std::vector<MempoolId_t> closed = allocator_.closeDrainedPools();
  const MutexLock lock(mutex_);
  for (const MempoolId_t id : closed) entries_.erase(id);
}

void Pools::retire(Retirement retirement) {
  {
    const MutexLock lock(retired_mutex_);
    retired_.push_back(std::move(retirement));
  }
  tidy();
}

// ---- Requests ----------------------------------------------------------------------------------

Route Pools::route(Stream stream) { return scopes_.route(stream); }

// The allocator asks only while there is something to find.
void Pools::followScopes() { allocator_.setRouter(scopes_.active() > 0 ? this : nullptr); }

void Pools::beginAllocateToPool(MempoolId_t id, const PoolFilter& filter) {
  createOrIncrefPool(id);
  {
    const MutexLock lock(mutex_);
    if (scopes_.begin(*entries_.at(id).pool, filter)) return followScopes();
  }
  letGo(id);
  const MutexLock lock(mutex_);
  refuse("beginAllocateToPool", id, "is being allocated to by such a scope already");
}

void Pools::endAllocateToPool(MempoolId_t id) {
  const MutexLock lock(mutex_);
  if (!scopes_.end(live("endAllocateToPool", id))) {
    refuse("endAllocateToPool", id, "has no scope that this thread could end");
  }
  followScopes();
}

// The request is a user of the pool meanwhile.
void* Pools::allocate(std::size_t bytes, Stream stream, MempoolId_t id) {
  Pool* pool = nullptr;
  {
    const MutexLock lock(mutex_);
    pool = &live("allocate", id);
    ++entries_.at(id).uses;
  }
  struct Use {
    Pools& pools;
    MempoolId_t id;
    ~Use() { pools.letGo(id); }
  } const use{*this, id};
  return allocator_.allocate(bytes, stream, *pool);
}

// ---- Captures ----------------------------------------------------------------------------------

std::shared_ptr<Recording> Pools::beginCapture(MempoolId_t id) {
  const MutexLock lock(mutex_);
  auto recording = std::make_shared<Recording>(allocator_.device(), live("capture", id));
  if (!scopes_.begin(recording)) refuse("capture", id, "is being captured or allocated to already");
  allocator_.beginRecording(recording);
  followScopes();
  return recording;
}

Pins Pools::endCapture(Recording& recording) {
  {
    const MutexLock lock(mutex_);
    scopes_.end(recording);
    followScopes();
  }
  return allocator_.endRecording(recording);
}

// A graph launched on a stream that is being captured becomes part of what is captured.
void Pools::keepInCapture(Stream stream, const std::vector<std::shared_ptr<Captured>>& held) {
  if (scopes_.active() == 0) return;
  const Route route = scopes_.route(stream);
  if (!route.recording) return;
  const MutexLock lock(route.recording->mutex());
  auto& kept = route.recording->kept;
  kept.insert(kept.end(), held.begin(), held.end());
}

void Pools::trim(MempoolId_t id, std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  allocator_.trim(*entry("trim", id).pool, bytes);
}

}  // namespace cistern
