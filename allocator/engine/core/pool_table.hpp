// The pools of one allocator: memory kept apart begins and ends here. The folder pools/ decides
// what uses which pool. The table owns the pools' records, and knows the router.
//
// Thread-safe; nothing here may be called with a heap's lock held.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/engine/cache/cache_table.hpp"
#include "allocator/engine/core/core.hpp"
#include "allocator/engine/core/pool.hpp"

namespace cistern {

class PoolTable {
 public:
  PoolTable(Core& core, CacheTable& caches) : core_(core), caches_(caches) {}

  /// A new live pool. Throws std::bad_alloc, changing nothing.
  Pool& open(MempoolId_t id, const PoolTraits& traits);
  /// The pool's last user has let go: its free memory is anyone's from now on. Calls no observer.
  void drain(Pool& pool);
  /// Lets go of a draining pool. Returns its traits, to be let go of without a lock. Returns none,
  /// and the pool stays, while it holds memory or is visited.
  std::optional<PoolTraits> close(Pool& pool) noexcept;
  /// Whether the default pool may take from the pool. Pre: the pool is live, and no other thread
  /// changes that, or this, meanwhile.
  void setLends(Pool& pool, bool lends) noexcept;
  /// The memory of all pools comes in segments from now on. Pre: PageBacking::areRefused(). Throws
  /// std::bad_alloc, changing nothing.
  void leavePages();
  /// Whether there is a pool that lends to this request's.
  bool anyLenders(const Request& request) const {
    return request.pool->isDefault() && lenders_.load(std::memory_order_relaxed) > 0;
  }

  /// Keeps the router as long as the allocator lives. A request that was under way when another was
  /// set may come to it at any time.
  void keepRouter(std::shared_ptr<Router> router) {
    const MutexLock lock(mutex_);
    routers_.push_back(std::move(router));
  }
  /// Sets the router, which decides the pool of a request that names none. With null, all go to the
  /// default pool. The router is kept, or outlives requests that are under way.
  void setRouter(Router* router);
  /// Whether there is one.
  bool routed() const { return router_.load(std::memory_order_relaxed) != nullptr; }
  /// The present route of a request of the calling thread on the stream.
  Route route(Stream stream, Router::Asked asked = Router::Asked::kCapturesAndScopes) {
    Router* const router = router_.load(std::memory_order_acquire);
    return router ? router->route(stream, asked) : Route{};
  }

 private:
  Core& core_;
  CacheTable& caches_;
  std::atomic<Router*> router_{nullptr};
  mutable Mutex mutex_{LockRank::kPoolTable};
  std::deque<Pool> pools_ CISTERN_GUARDED_BY(mutex_);
  std::vector<Pool*> spare_ CISTERN_GUARDED_BY(mutex_);  ///< those that are nowhere; room for all
  std::atomic<int> lenders_{0};                          ///< live pools that lend
  std::vector<std::shared_ptr<Router>> routers_ CISTERN_GUARDED_BY(mutex_);
};

}  // namespace cistern
