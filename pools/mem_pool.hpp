// A pool of a program's own, for a scope: what is allocated inside MemPoolScope goes there.
//
//   MemPool pool(pools);
//   {
//     MemPoolScope scope(pool);
//     tensor = allocator.allocate(bytes, stream);   // in the pool
//   }
#pragma once

#include <memory>

#include "pools/pools.hpp"

namespace cistern {

/// What is special about a MemPool.
struct MemPoolOptions {
  std::shared_ptr<SegmentSource> allocator;  ///< supplies its segments; null: the device
  bool is_user_created = true;               ///< which counter its id comes from
  bool use_on_oom = false;                   ///< the default pool takes from it rather than fail
  bool no_split = false;                     ///< each block has a segment of its own
};

/// One user of a pool, from its making to its end. Not thread-safe; the pool is.
class MemPool {
 public:
  explicit MemPool(Pools& pools, const MemPoolOptions& options = {});
  /// Lets go of the pool and empties its cache. Blocks held stay valid; a graph that shares the
  /// pool keeps it.
  ~MemPool();
  MemPool(const MemPool&) = delete;
  MemPool& operator=(const MemPool&) = delete;

  MempoolId_t id() const { return id_; }
  int useCount() const { return pools_.getPoolUseCount(id_); }
  /// allocate in this pool, whatever scopes there are; for worker threads.
  void* allocate(std::size_t bytes, Stream stream) { return pools_.allocate(bytes, stream, id_); }
  void emptyCache() { pools_.emptyCache(id_); }
  Pools& pools() const { return pools_; }

 private:
  Pools& pools_;
  const MempoolId_t id_;
};

/// While it lives, what the calling thread allocates, or what the filter catches, goes to the pool.
/// A thread's own ends on the thread it began on, or with that.
class MemPoolScope {
 public:
  explicit MemPoolScope(MemPool& pool, const PoolFilter& filter = PoolFilter::thisThread())
      : MemPoolScope(pool.pools(), pool.id(), filter) {}
  MemPoolScope(Pools& pools, MempoolId_t id, const PoolFilter& filter = PoolFilter::thisThread());
  ~MemPoolScope();
  MemPoolScope(const MemPoolScope&) = delete;
  MemPoolScope& operator=(const MemPoolScope&) = delete;

 private:
  Pools& pools_;
  const MempoolId_t id_;
  const std::uint64_t number_;
};

}  // namespace cistern
