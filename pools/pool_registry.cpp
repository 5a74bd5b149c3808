#include "pools/pool_registry.hpp"

#include <algorithm>
#include <new>

#include <fmt/format.h>

#include "allocator/base/bounds.hpp"
#include "allocator/base/process.hpp"
#include "allocator/base/steps.hpp"
#include "allocator/engine/capture/recording.hpp"
#include "allocator/engine/giving_back/giving_back.hpp"
#include "allocator/engine/paths/slow_path.hpp"
#include "pools/captured.hpp"

namespace cistern {

namespace {

constexpr std::size_t kLooks = bound(16);  ///< at retirements, and at draining pools, by one verb

}  // namespace

// When the last scope ends with its thread, nobody else checks whether any scope is left.
PoolRegistry::PoolRegistry(CachingAllocator& allocator)
    : allocator_(allocator), kept_scopes_(std::make_shared<Scopes>([this] {
        const MutexLock lock(mutex_);
        followScopes();
      })) {
  allocator_.engine().pools.keepRouter(kept_scopes_);
  tidier_ = allocator_.engine().hooks.tidy.add([this](Tidying why) { return tidyForMemory(why); });
}

PoolRegistry::~PoolRegistry() {
  scopes_.close();
  allocator_.engine().pools.setRouter(nullptr);
  (void)allocator_.engine().hooks.tidy.remove(tidier_);
  if (driverMayBeCalled()) {
    while (retired.letGo(SIZE_MAX, true)) {
    }
  }
  retired.keepForGood();
  tellReleased();
}

// ---- Users -------------------------------------------------------------------------------------

void PoolRegistry::refuse(const char* verb, MempoolId_t id, const std::string& why) const {
  throw PoolError(fmt::format("{}: pool {} {}", verb, poolName(id), why));
}

const PoolRegistry::Entry& PoolRegistry::entry(const char* verb, MempoolId_t id) const {
  const auto it = entries_.find(id);
  if (it == entries_.end()) refuse(verb, id, "is not there: it was never made, or is gone");
  return it->second;
}

Pool& PoolRegistry::live(const char* verb, MempoolId_t id) const {
  const Entry& found = entry(verb, id);
  if (found.uses == 0) refuse(verb, id, "is draining: its last user has let go");
  return *found.pool;
}

PoolRegistry::Entry& PoolRegistry::makeOrCount(const char* verb, MempoolId_t id,
                                               const PoolTraits& traits) {
  if (id == MempoolId_t{}) refuse(verb, id, "is the default pool");
  if (entries_.contains(id)) {
    (void)live(verb, id);
    ++entries_.at(id).uses;
    return entries_.at(id);
  }
  const std::size_t releases = released_.size() + entries_.size() + 1;
  if (released_.capacity() < releases) released_.reserve(2 * releases);
  const auto made = entries_.emplace(id, Entry{nullptr, 1, 0, {id}, {}}).first;
  made->second.self = made->second.own.begin();
  try {
    made->second.pool = &allocator_.engine().pools.open(id, traits);
  } catch (...) {
    entries_.erase(made);
    throw;
  }
  return made->second;
}

void PoolRegistry::createOrIncrefPool(MempoolId_t id, const PoolTraits& traits) {
  tidy();
  const MutexLock lock(mutex_);
  (void)makeOrCount("createOrIncrefPool", id, traits);
}

// Undoes that.
void PoolRegistry::uncount(MempoolId_t id) noexcept {
  {
    const MutexLock lock(mutex_);
    dropUse(id);
  }
  tidy();
}

// The same, for a user that lets go by itself.
void PoolRegistry::count(MempoolId_t id, const PoolTraits& traits) {
  tidy();
  const MutexLock lock(mutex_);
  ++makeOrCount("createOrIncrefPool", id, traits).kept;
}

std::shared_ptr<Captured> PoolRegistry::keep(MempoolId_t id) {
  auto captured = std::make_shared<Captured>(*this, id);
  count(id, {});
  captured->counted();
  return captured;
}

// While a scope of a verb is active, one user that a verb counted must stay. A MemPool or a graph
// may go at any time, and would leave the scope without its pool.
void PoolRegistry::releasePool(MempoolId_t id) {
  {
    const MutexLock lock(mutex_);
    const Pool& pool = live("releasePool", id);
    const Entry& of = entries_.at(id);
    if (of.uses == of.kept) {
      refuse("releasePool", id, "has only users that let go by themselves: graphs and MemPools");
    }
    if (of.uses - of.kept == 1 && scopes_.activeOf(pool, Scopes::EndedBy::kVerb) > 0) {
      refuse("releasePool", id, "has one use left to release, for which a scope is active");
    }
    dropUse(id);
  }
  tidy();
}

// For users that are counted as kept. Pre: the caller is one.
void PoolRegistry::letGo(MempoolId_t id) noexcept {
  letGoQuietly(id);
  tidy();
}

// Calls nothing of the program's: the caller may hold a lock. The next tidy() calls the observers.
void PoolRegistry::letGoQuietly(MempoolId_t id) noexcept {
  const MutexLock lock(mutex_);
  --entries_.at(id).kept;
  dropUse(id);
}

void PoolRegistry::dropUse(MempoolId_t id) noexcept {
  Entry& of = entries_.at(id);
  if (--of.uses > 0) return;
  ++draining_;
  draining_ids_.splice(draining_ids_.begin(), of.own);
  allocator_.engine().pools.drain(*of.pool);
  released_.push_back(id);
  ++untold_;
}

void PoolRegistry::tellReleased() noexcept {
  while (untold_ > 0) {
    MempoolId_t id;
    {
      const MutexLock lock(mutex_);
      if (told_ == released_.size()) return;
      id = released_[told_++];
      if (told_ == released_.size()) released_.clear(), told_ = 0;
      --untold_;
    }
    allocator_.engine().hooks.pool_released(id);
  }
}

int PoolRegistry::getPoolUseCount(MempoolId_t id) const {
  const MutexLock lock(mutex_);
  return entry("getPoolUseCount", id).uses;
}

// Lets go of what nothing uses any more. If the host is short of memory, the next call does.
void PoolRegistry::tidy() noexcept {
  if (!retired.any() && draining_ == 0 && untold_ == 0) return;
  (void)retired.letGo(kLooks, false);
  tellReleased();                  // before they are closed: an observer may free what it has there
  std::vector<PoolTraits> traits;  // goes without a lock: a source is the program's
  try {
    const MutexLock lock(mutex_);
    traits = closeDrained(kLooks);
  } catch (const std::bad_alloc&) {
  }
}

// The same for a thread that looks for memory. True if it let go of a graph's memory. A closed pool
// holds no memory, so this does not wait for another thread that holds the lock. The caller holds a
// lock, and leaves calls to the program to the next call: observers, and traits.
bool PoolRegistry::tidyForMemory(Tidying why) {
  if (!retired.any() && draining_ == 0 && untold_ == 0) return false;
  if (why == Tidying::kLastResort) return retired.letGo(SIZE_MAX, true);
  if (why == Tidying::kEmptyCache) retired.waitForUnknown(std::nullopt);
  const bool any = retired.letGo(why == Tidying::kEmptyCache ? SIZE_MAX : kLooks, false);
  tellReleased();
  std::vector<PoolTraits> traits;
  if (!mutex_.try_lock()) return any;
  const MutexUnlock unlock(mutex_);
  traits = closeDrained(why == Tidying::kMiss ? kLooks : SIZE_MAX);
  return any;
}

// Looks at that many pools, in turn. All that may throw comes before the first is closed.
std::vector<PoolTraits> PoolRegistry::closeDrained(std::size_t looks) {
  looks = std::min(looks, draining_ids_.size());
  noteSteps(looks);
  std::vector<PoolTraits> traits;
  traits.reserve(looks);
  for (; looks > 0; --looks) {
    const auto id = draining_ids_.begin();
    std::optional<PoolTraits> closed = allocator_.engine().pools.close(*entries_.at(*id).pool);
    if (!closed) {
      draining_ids_.splice(draining_ids_.end(), draining_ids_, id);
      continue;
    }
    traits.push_back(std::move(*closed));
    entries_.erase(*id);
    draining_ids_.erase(id);
    --draining_;
  }
  return traits;
}

// Looks at a draining pool next, as something has changed there.
void PoolRegistry::lookFirstAt(MempoolId_t id) noexcept {
  const MutexLock lock(mutex_);
  const auto it = entries_.find(id);
  if (it != entries_.end() && it->second.uses == 0)
    draining_ids_.splice(draining_ids_.begin(), draining_ids_, it->second.self);
}

// ---- Requests ----------------------------------------------------------------------------------

// The allocator calls the router only while a scope is active.
void PoolRegistry::followScopes() noexcept {
  allocator_.engine().pools.setRouter(scopes_.active() > 0 ? &scopes_ : nullptr);
}

void PoolRegistry::beginAllocateToPool(MempoolId_t id, const PoolFilter& filter) {
  (void)beginScopeOf(id, filter, Scopes::EndedBy::kVerb);
}

std::uint64_t PoolRegistry::beginScopeOf(MempoolId_t id, const PoolFilter& filter,
                                         Scopes::EndedBy ended_by) {
  tidy();
  {
    const MutexLock lock(mutex_);
    (void)makeOrCount("beginAllocateToPool", id, {});
  }
  try {
    const MutexLock lock(mutex_);
    const std::uint64_t number = scopes_.begin(*entries_.at(id).pool, filter, ended_by);
    if (number == 0)
      refuse("beginAllocateToPool", id, "is being allocated to by such a scope already");
    followScopes();
    return number;
  } catch (...) {
    uncount(id);
    throw;
  }
}

std::uint64_t PoolRegistry::beginScope(MempoolId_t id, const PoolFilter& filter) {
  const std::uint64_t number = beginScopeOf(id, filter, Scopes::EndedBy::kItself);
  const MutexLock lock(mutex_);
  ++entries_.at(id).kept;
  return number;
}

bool PoolRegistry::endScope(std::uint64_t number) noexcept {
  const MutexLock lock(mutex_);
  const bool ended = scopes_.end(number);
  followScopes();
  return ended;
}

void PoolRegistry::endAllocateToPool(MempoolId_t id) {
  const MutexLock lock(mutex_);
  if (!scopes_.end(live("endAllocateToPool", id))) {
    refuse("endAllocateToPool", id, "has no scope that this thread could end");
  }
  followScopes();
}

void* PoolRegistry::allocate(std::size_t bytes, Stream stream, MempoolId_t id) {
  std::shared_ptr<void> token;
  Pool* pool = nullptr;
  {
    const MutexLock lock(mutex_);
    pool = &live("allocate", id);
    token = pool->token();
  }
  return slow_path::allocate(allocator_.engine(), bytes, stream, *pool);
}

// ---- Captures ----------------------------------------------------------------------------------

std::shared_ptr<Recording> PoolRegistry::beginCapture(MempoolId_t id, Stream origin) {
  const Visit visiting = visit("captureBegin", id);
  allocator_.engine().streams.registerStream(origin);  // while it is not captured
  const MutexLock lock(mutex_);
  auto recording =
      std::make_shared<Recording>(allocator_.engine(), live("captureBegin", id), origin);
  if (!scopes_.begin(recording)) {
    refuse("captureBegin", id, "is being captured into, or allocated to by a filter, already");
  }
  try {
    recording->prepare(origin);
  } catch (...) {
    scopes_.end(*recording);
    throw;
  }
  followScopes();
  return recording;
}

// The scope goes last: while it exists, the pool's next capture cannot begin. It catches no request
// any more.
Footprint PoolRegistry::endCapture(Recording& recording) noexcept {
  Footprint footprint = recording.end();
  const MutexLock lock(mutex_);
  scopes_.end(recording);
  followScopes();
  return footprint;
}

// A graph launched on a stream that is being captured becomes part of that capture. False when
// nobody here captures the stream.
bool PoolRegistry::keepInCapture(Stream stream, const std::shared_ptr<Captured>& held) {
  if (scopes_.active() == 0) return false;
  const Route route = scopes_.route(stream, Router::Asked::kCaptures);
  if (!route.recording) return false;
  route.recording->keep(held);
  return true;
}

void PoolRegistry::trim(MempoolId_t id, std::uint64_t bytes) {
  const Visit visiting = visit("trim", id);
  cistern::trim(allocator_.engine(), visiting.pool, bytes);
}

PoolRegistry::Visit PoolRegistry::visit(const char* verb, MempoolId_t id) const {
  const MutexLock lock(mutex_);
  Pool& pool = *entry(verb, id).pool;
  return {pool, pool.token()};
}

}  // namespace cistern
