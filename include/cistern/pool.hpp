// Pools: memory that is kept apart, for a graph or for a part of the program.
//
//   live      use count > 0: its users are MemPools, graphs, and callers of createOrIncrefPool
//   draining  the last user has let go; blocks held stay valid and are freed into it, and what lies
//             free goes back to the device at the next emptyCache, or to a request that needs it
//   gone      its memory has left; its name means nothing any more
//
//   MemPool pool(pools);
//   {
//     MemPoolScope scope(pool);
//     tensor = allocator.allocate(bytes, stream);   // in the pool
//   }
//
// docs/pools.md answers what a user asks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cistern/allocator.hpp"
#include "cistern/segment_source.hpp"

namespace cistern {

class PoolRegistry;

/// A name that was never given out in this process: {0, uid} for a user, {uuid, 0} for a capture
/// that was given no pool. Both count from 1. (PyTorch's graph_pool_handle.) Thread-safe. A name is
/// no pool yet: its first use makes one.
CISTERN_API MempoolId_t graphPoolHandle(bool is_user_created = true) noexcept;

/// "{0, 7}"
CISTERN_API std::string poolName(MempoolId_t id);

/// Which requests a scope catches.
class CISTERN_API PoolFilter {
 public:
  /// Requests of the thread that begins the scope, on any stream; no other thread's.
  static PoolFilter thisThread() { return PoolFilter{}; }
  /// Requests of any thread on streams that `catches` says yes to. It is asked without a lock held,
  /// by any thread, while the scope is active; what it asks for itself no filter catches. What it
  /// throws leaves the verb, which changed nothing. Throws InvalidArgument for an empty function.
  static PoolFilter streams(std::function<bool(Stream)> catches);
  /// Requests of any thread on that stream.
  static PoolFilter stream(Stream only) {
    PoolFilter filter = streams([only](Stream stream) { return stream == only; });
    filter.only_ = only;
    return filter;
  }

  bool byThread() const { return catches_ == nullptr; }
  bool catches(Stream stream) const;
  /// The stream of a filter that stream() has made; none for others.
  std::optional<Stream> onlyStream() const { return only_; }

 private:
  PoolFilter() = default;
  explicit PoolFilter(std::function<bool(Stream)> catches) : catches_(std::move(catches)) {}
  std::function<bool(Stream)> catches_;
  std::optional<Stream> only_;
};

/// What a pool held at one moment, to be set back to later.
struct PoolCheckpoint {
  MempoolId_t id;
  std::vector<LiveBlock> blocks;  ///< by address
};

/// The pools of one allocator: which there are, who uses them, and which requests are theirs. All
/// verbs are thread-safe. They throw PoolError, changing nothing, for an id that is not a live
/// pool's unless said otherwise.
class CISTERN_API Pools final {
 public:
  /// One for each allocator, which must outlive it.
  explicit Pools(CachingAllocator& allocator);
  /// Pre: no graph, MemPool or scope of it is left. Waits for replays that are still queued. Where
  /// the device does not say that they are complete, because it fails or a stream of theirs is
  /// being captured, their memory stays in place as long as the allocator lives. In a child of fork
  /// nothing is waited for or given back.
  ~Pools();
  Pools(const Pools&) = delete;
  Pools& operator=(const Pools&) = delete;

  // ---- Users -----------------------------------------------------------------------------------

  /// Makes the pool with use count 1, or counts one user more; `traits` are those of a new one.
  /// PoolError for {0, 0}, and for a pool that is draining.
  void createOrIncrefPool(MempoolId_t id, const PoolTraits& traits = {});
  /// One user less; at 0 the pool is draining. PoolError when all its users are graphs, MemPools
  /// and their scopes, which let go by themselves, or when only those would be left for a scope of
  /// beginAllocateToPool's.
  void releasePool(MempoolId_t id);
  /// 0 for a draining pool. PoolError for one that is gone or never was.
  int getPoolUseCount(MempoolId_t id) const;

  // ---- Requests --------------------------------------------------------------------------------

  /// Requests that `filter` catches go to the pool until endAllocateToPool; makes the pool if there
  /// is none, and counts one user more either way. Scopes nest: the one that began last comes
  /// first. PoolError for a second scope of the same pool: of this thread, or, with a filter on
  /// streams, of anyone.
  void beginAllocateToPool(MempoolId_t id, const PoolFilter& filter);
  /// Ends that; does not count a user less. PoolError when there is no such scope: a thread's own
  /// ends on that thread, and with it at the latest.
  void endAllocateToPool(MempoolId_t id);
  /// allocate in that pool, whatever scopes there are.
  void* allocate(std::size_t bytes, Stream stream, MempoolId_t id);

  // ---- What a pool does ------------------------------------------------------------------------

  /// Whether the default pool takes from here rather than be out of memory.
  void setUseOnOOM(MempoolId_t id, bool use);
  /// From now on each block has a segment of its own. PoolError once the pool has memory.
  void setNoSplit(MempoolId_t id);
  /// Returns what is wholly free in the pool, live or draining, to the device, but for what a graph
  /// has captured. Touches no other pool.
  void emptyCache(MempoolId_t id);
  /// The same of the default pool and of all that are draining. A live pool keeps what it has: it
  /// may be known to others by its addresses, to a network for one.
  void emptyUnowned();

  // ---- What a pool holds: live or draining -----------------------------------------------------

  /// Whether the blocks held in the pool are exactly these.
  bool checkPoolLiveAllocations(MempoolId_t id, const std::set<void*>& expected) const;
  /// The blocks held in the pool.
  PoolCheckpoint getCheckpointState(MempoolId_t id) const;
  /// Makes the blocks of the checkpoint live, at their addresses, and no others: frees what is live
  /// and was not then, and makes what was and is not. PoolError, changing nothing, when the pool
  /// does not have that memory any more. Pre: nobody else uses the pool meanwhile.
  CheckpointDelta setCheckpointPoolState(const PoolCheckpoint& checkpoint);
  /// What the pool holds at this moment: each `current`, and nothing else.
  MemoryStats::Values memoryStats(MempoolId_t id) const;

  CachingAllocator& allocator();
  Device& device();
  /// What they are made of, for Cistern's own folders: programs use the verbs.
  PoolRegistry& registry() { return *registry_; }

 private:
  std::unique_ptr<PoolRegistry> registry_;
};

/// What is special about a MemPool.
struct MemPoolOptions {
  std::shared_ptr<SegmentSource> allocator;  ///< supplies its segments; null: the device
  bool is_user_created = true;               ///< which counter its id comes from
  bool use_on_oom = false;                   ///< the default pool takes from it rather than fail
  bool no_split = false;                     ///< each block has a segment of its own
};

/// One user of a pool, from its making to its end. Not thread-safe; the pool is.
class CISTERN_API MemPool {
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
class CISTERN_API MemPoolScope {
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
