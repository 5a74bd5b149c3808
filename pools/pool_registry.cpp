#include "pools/pool_registry.hpp"

#include <new>
#include <vector>

#include "allocator/base/bounds.hpp"

namespace cistern {

namespace {

constexpr std::size_t kLooks = bound(16);  ///< at draining pools, by one verb

}  // namespace

// When the last scope ends with its thread, nobody else checks whether any scope is left.
PoolRegistry::PoolRegistry(CachingAllocator& of)
    : allocator(of),
      engine(of.engine()),
      users(engine),
      graphs(engine),
      sleeping(engine, users, graphs),
      scopes(std::make_shared<Scopes>([this] {
        const MutexLock lock(users.mutex);
        followScopes();
      })) {
  engine.pools.keepRouter(scopes);
  tidier = engine.hooks.tidy.add([this](Tidying why) { return tidyForMemory(why); });
}

PoolRegistry::~PoolRegistry() {
  scopes->close();
  engine.pools.setRouter(nullptr);
  (void)engine.hooks.tidy.remove(tidier);
  if (driverMayBeCalled()) {
    while (graphs.retired.poll() || graphs.retired.wait()) {
    }
  }
  graphs.keepForGood();
  users.tellReleased();
}

// ---- Users -------------------------------------------------------------------------------------

void PoolRegistry::addUser(const char* verb, MempoolId_t id, const PoolTraits& traits, LetGoBy by) {
  tidy();
  users.add(verb, id, traits, by);
}

void PoolRegistry::letGo(MempoolId_t id, LetGoBy by) noexcept {
  {
    const MutexLock lock(users.mutex);
    users.drop(id, by);
  }
  tidy();
}

// ---- Scopes ------------------------------------------------------------------------------------

std::uint64_t PoolRegistry::beginScope(MempoolId_t id, const PoolFilter& filter, LetGoBy by) {
  constexpr const char* verb = "beginAllocateToPool";
  addUser(verb, id, {}, by);
  try {
    const MutexLock lock(users.mutex);
    const std::uint64_t number = scopes->begin(*users.find(verb, id).pool, filter, by);
    if (number == 0) refusePool(verb, id, "is being allocated to by such a scope already");
    followScopes();
    return number;
  } catch (...) {
    letGo(id, by);
    throw;
  }
}

bool PoolRegistry::endScope(std::uint64_t number) noexcept {
  const MutexLock lock(users.mutex);
  const bool ended = scopes->end(number);
  followScopes();
  return ended;
}

void PoolRegistry::followScopes() noexcept {
  engine.pools.setRouter(scopes->active() > 0 ? scopes.get() : nullptr);
}

// ---- What nobody uses any more -----------------------------------------------------------------

// Observers are called before pools are closed: an observer may free what it has there. If the host
// is short of memory, the next call closes them.
void PoolRegistry::tidy() noexcept {
  if (engine.hooks.untidy == 0) return;
  (void)graphs.retired.poll(PendingFrees::kFew);
  sleeping.tidy(kLooks);
  users.tellReleased();
  std::vector<PoolTraits> traits;  // goes without a lock: a source is the program's
  try {
    const MutexLock lock(users.mutex);
    traits = users.closeDrained(kLooks);
  } catch (const std::bad_alloc&) {
  }
}

// A closed pool holds no memory, so this does not wait for another thread that holds the lock. With
// kLastResort the caller holds a lock: calls to the program, of observers and of what traits
// destroy, are left to the next call.
bool PoolRegistry::tidyForMemory(Tidying why) {
  PendingFrees& retired = graphs.retired;
  if (engine.hooks.untidy == 0) return false;
  if (why == Tidying::kLastResort) return retired.poll() || retired.wait();
  const bool few = why == Tidying::kMiss;
  bool any = why == Tidying::kEmptyCache && retired.waitForStuck();
  any |= retired.poll(few ? PendingFrees::kFew : PendingFrees::kAll);
  const std::size_t looks = few ? kLooks : SIZE_MAX;
  users.tellReleased();
  sleeping.tidy(looks);
  std::vector<PoolTraits> traits;
  if (!users.mutex.try_lock()) return any;
  const MutexUnlock unlock(users.mutex);
  traits = users.closeDrained(looks);
  return any;
}

}  // namespace cistern
