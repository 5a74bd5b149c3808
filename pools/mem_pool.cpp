// The users of a pool that last as long as an object: MemPool and its scopes.
#include <new>

#include "cistern/pool.hpp"
#include "pools/pool_registry.hpp"

namespace cistern {

MemPool::MemPool(Pools& pools, const MemPoolOptions& options)
    : pools_(pools), id_(graphPoolHandle(options.is_user_created)) {
  PoolRegistry& at = pools_.registry().here("MemPool");
  if (options.use_on_oom && options.location == Location::kHost) refuseLending("MemPool", id_);
  at.addUser(
      "createOrIncrefPool", id_,
      {options.allocator, options.no_split, options.location, options.one_handle, options.limit},
      LetGoBy::kItself);
  if (options.use_on_oom) pools_.setUseOnOOM(id_, true);
}

// The pool exists and is in use, by this object. It may be gone as soon as this lets go of it: then
// nothing is left to empty.
MemPool::~MemPool() {
  if (!pools_.registry().mayLetGo()) return;
  pools_.setUseOnOOM(id_, false);
  pools_.registry().letGo(id_);
  try {
    pools_.emptyCache(id_);
  } catch (const PoolError&) {
  } catch (const std::bad_alloc&) {
    // The host is short of memory: free memory goes at the next emptyCache, or to a request that
    // needs it.
  }
}

MemPoolScope::MemPoolScope(Pools& pools, MempoolId_t id, const PoolFilter& filter)
    : pools_(pools),
      id_(id),
      number_(pools.registry().here("MemPoolScope").beginScope(id, filter)) {}

// A scope of another thread that is still running cannot be ended here. It goes on, and so does its
// pool.
MemPoolScope::~MemPoolScope() {
  PoolRegistry& registry = pools_.registry();
  if (!registry.isHere()) return;
  if (registry.endScope(number_) && registry.mayLetGo()) registry.letGo(id_);
}

}  // namespace cistern
