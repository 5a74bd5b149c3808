// The state of Pools (cistern/pool.hpp), and the steps that its verbs share with the users that let
// go by themselves: MemPools, their scopes and graphs.
#pragma once

#include <cstdint>
#include <memory>

#include "allocator/base/process.hpp"
#include "allocator/engine/ground/hooks.hpp"
#include "pools/captured_graphs.hpp"
#include "pools/pool_users.hpp"
#include "pools/scopes.hpp"
#include "pools/sleeping_pools.hpp"

namespace cistern {

/// Thread-safe. The functions below are not verbs: they ask nobody whether this process made it.
struct PoolRegistry final {
  explicit PoolRegistry(CachingAllocator& of);
  /// Pre: isHere(). Pools says what else must hold, and for which replays it waits.
  ~PoolRegistry();

  // ---- The process

  /// Whether this process made it.
  bool isHere() const noexcept { return made.isHere(); }
  /// Whether a user that ends by itself may let go of its pool: not at exit, nor in a child of
  /// fork.
  bool mayLetGo() const noexcept { return made.isHere() && driverMayBeCalled(); }
  /// Throws Error in a child of fork. For verbs.
  PoolRegistry& here(const char* verb) {
    made.requireHere(verb);
    return *this;
  }

  // ---- Users

  /// PoolUsers::add, which says what it throws, after tidy().
  void addUser(const char* verb, MempoolId_t id, const PoolTraits& traits, LetGoBy by);
  /// Pre: such a user is counted.
  void letGo(MempoolId_t id, LetGoBy by = LetGoBy::kItself) noexcept;

  // ---- Scopes

  /// Adds a user, `by`, for the scope, and returns the scope's number. Throws as
  /// beginAllocateToPool does.
  std::uint64_t beginScope(MempoolId_t id, const PoolFilter& filter, LetGoBy by = LetGoBy::kItself);
  /// Ends the scope, not the use. False when it goes on, because it is another thread's own.
  bool endScope(std::uint64_t number) noexcept;
  /// Call this when a scope or capture has begun or ended: the allocator calls the router only
  /// while one is active.
  void followScopes() noexcept CISTERN_REQUIRES(users.mutex);

  // ---- What nobody uses any more

  /// Lets go of some of it. Each verb that may have left such, or needs memory, calls this. Pre: no
  /// lock is held, as observers are called.
  void tidy() noexcept;
  /// The same for a thread that looks for memory. True if it let go of a graph's memory.
  bool tidyForMemory(Tidying why);

  CachingAllocator& allocator;
  Engine& engine;         ///< the allocator's
  const Birthplace made;  ///< in this process, or in one that it was forked from
  PoolUsers users;        ///< which pools there are
  CapturedGraphs graphs;  ///< let go of their pools, so they go before the users
  SleepingPools sleeping;
  /// The allocator keeps them too: a request may be using them when this object goes.
  const std::shared_ptr<Scopes> scopes;
  HookId tidier;  ///< of tidyForMemory in the engine's hooks
};

}  // namespace cistern
