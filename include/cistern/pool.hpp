// Pools: memory that is kept apart, for a graph or for a part of the program.
//
//   live      use count > 0: its users are MemPools, their scopes, graphs, and callers of
//             createOrIncrefPool or beginAllocateToPool
//   draining  the last user has let go. Blocks held stay valid and are freed into it. Its free
//             memory goes back to the device at the next emptyCache, or to a request that needs it
//   gone      its memory has left; its name means nothing any more
//
//   MemPool pool(pools);
//   {
//     MemPoolScope scope(pool);
//     tensor = allocator.allocate(bytes, stream);   // in the pool
//   }
//
// docs/pools.md answers users' questions.
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
#include "cistern/sleep.hpp"

namespace cistern {

struct PoolRegistry;

/// A name that was never given out in this process: {0, uid} for a user, {uuid, 0} for a capture
/// without a pool. Both count from 1. (PyTorch's graph_pool_handle.) Thread-safe. A name is no pool
/// yet: its first use makes one.
CISTERN_API MempoolId_t graphPoolHandle(bool is_user_created = true) noexcept;

/// "{0, 7}"
CISTERN_API std::string poolName(MempoolId_t id);

/// The requests that a scope catches.
class CISTERN_API PoolFilter {
 public:
  /// Requests of the thread that begins the scope, on any stream; no other thread's.
  static PoolFilter thisThread() { return PoolFilter{}; }
  /// Requests of any thread on streams for which `catches` returns true. Any thread may call it,
  /// without a lock held, while the scope is active. No filter catches the function's own requests.
  /// An exception of the function leaves the verb, which has changed nothing. Throws
  /// InvalidArgument for an empty function.
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

/// The blocks that a pool held at one moment, so that it can be set back to them later.
struct PoolCheckpoint {
  MempoolId_t id;
  std::vector<LiveBlock> blocks;  ///< by address
};

/// The pools of one allocator, their users, and the requests that go to them. All verbs are
/// thread-safe. Unless said otherwise, they throw PoolError, changing nothing, for an id that is
/// not a live pool's.
class CISTERN_API Pools final {
 public:
  /// One for each allocator, which must outlive it.
  explicit Pools(CachingAllocator& allocator);
  /// Pre: no graph, MemPool or scope of it is left. Waits for replays that are still queued. The
  /// device may fail to confirm that they are complete, because it fails or a stream of theirs is
  /// being captured. Then their memory stays in place as long as the allocator lives. In a child of
  /// fork the destructor waits for nothing and gives nothing back.
  ~Pools();
  Pools(const Pools&) = delete;
  Pools& operator=(const Pools&) = delete;

  // ---- Users -----------------------------------------------------------------------------------

  /// Makes the pool with use count 1, or adds one user. `traits` apply only to a new pool.
  /// PoolError for {0, 0}, and for a pool that is draining. PoolError also for a new pool in host
  /// memory, if the device or the allocator's options admit none, or with another trait.
  void createOrIncrefPool(MempoolId_t id, const PoolTraits& traits = {});
  /// Removes one user; at 0 the pool is draining. Graphs, MemPools and their scopes release
  /// themselves. PoolError if no use is left that createOrIncrefPool or beginAllocateToPool added.
  /// PoolError also for the last of these uses while a beginAllocateToPool scope is open.
  void releasePool(MempoolId_t id);
  /// 0 for a draining pool. PoolError for one that is gone or never was.
  int getPoolUseCount(MempoolId_t id) const;

  // ---- Requests --------------------------------------------------------------------------------

  /// Requests that `filter` catches go to the pool until endAllocateToPool. Makes the pool if it
  /// does not exist, and adds one user either way. Scopes nest: the one that began last comes
  /// first. For thisThread(): PoolError if this thread has a scope of its own for the pool already.
  /// With a filter on streams: PoolError if the pool has such a scope, or a capture, already.
  void beginAllocateToPool(MempoolId_t id, const PoolFilter& filter);
  /// Ends the scope that beginAllocateToPool began; removes no user. PoolError if the pool has no
  /// scope that this thread may end. A thread's own scope can be ended only on that thread. It ends
  /// with the thread at the latest.
  void endAllocateToPool(MempoolId_t id);
  /// Allocates in that pool, whatever scopes are active. If a capture records the stream, the
  /// capture's pool serves instead. `alignment`: as CachingAllocator::allocate's.
  void* allocate(std::size_t bytes, Stream stream, MempoolId_t id, std::size_t alignment = 512);

  // ---- What a pool does ------------------------------------------------------------------------

  /// Whether the default pool takes memory from this pool rather than be out of memory. PoolError
  /// if a pool in host memory is to lend.
  void setUseOnOOM(MempoolId_t id, bool use);
  /// The most bytes of blocks that the pool may have in use, as they are placed: those that the
  /// program holds, those that the pool has lent, and those that were freed and wait for queued
  /// work. A request beyond that waits for queued work (not a capture's), asks the reclaim
  /// callbacks, and is an OutOfMemory that names the pool. A request counts with its own size, also
  /// where a larger free block serves it whole. Threads that allocate at the same moment may be
  /// refused although there is room for one of them. UINT64_MAX: none. Takes nothing away from a
  /// pool that has more. PoolError for the default pool, which CachingAllocator::setMemoryFraction
  /// limits.
  void setLimit(MempoolId_t id, std::uint64_t bytes);
  /// From now on each block has a segment of its own. PoolError once the pool has memory.
  void setNoSplit(MempoolId_t id);
  /// Holds all of the pool's memory where it is, present and future, as CachingAllocator::hold
  /// does, for as long as the returned pointer has a user. That is a user of the pool, too. Memory
  /// comes to the pool as ever, but none leaves it, whether by emptyCache, by sleep, or to lend.
  /// Pre: the returned pointer is dropped before the pools end. PoolError for the default pool;
  /// std::bad_alloc.
  [[nodiscard]] std::shared_ptr<void> hold(MempoolId_t id);
  /// Returns wholly free memory of the pool, live or draining, to the device, except what a graph
  /// has captured. Touches no other pool.
  void emptyCache(MempoolId_t id);
  /// Returns wholly free memory of the default pool and of all draining ones to the device. A live
  /// pool keeps its memory: others, such as a network card, may have registered its addresses.
  void emptyUnowned();

  // ---- Sleep (docs/sleep.md): the memory of pools goes back to the device for a while -----------
  // A pool that sleeps keeps its blocks, with their addresses and nothing behind them. They may be
  // freed. A request, a capture, a checkpoint that is set back and an export are a PoolError, a
  // replay of its graphs is a GraphError. A pool that sleeps already is passed over, and so is one
  // that wakes and is awake. The verbs of sleep and wake are all or nothing: after an exception the
  // pools are as before.

  /// The pools fall asleep. Waits for all work of the device.
  /// Throws:
  /// - PoolError for the default pool, for a pool that is gone or is being captured into, and while
  ///   one of its graphs is being launched;
  /// - PoolError for a pool that has its memory in segments, or in the host's memory;
  /// - HostShortage if the host admits too little pinned memory for what is to be saved;
  /// - DeviceFailure; std::bad_alloc; what a hook throws.
  SleepReport sleep(const std::vector<MempoolId_t>& ids, Contents contents = Contents::kSave);
  /// The same. Waits for `after`, and for every stream that owns, recorded or replayed the memory.
  /// It waits for the device if that does not do. Pre: every other use of the memory is queued on
  /// `after`, or on a stream that `after` waits for.
  SleepReport sleep(const std::vector<MempoolId_t>& ids, Stream after,
                    Contents contents = Contents::kSave);
  /// The pools wake. When this returns, their blocks have their bytes, for all streams.
  /// Throws:
  /// - PoolError for a pool that is gone;
  /// - OutOfMemory, with who holds the memory, if there is no room for the pools;
  /// - DeviceFailure; std::bad_alloc; what a hook throws.
  WakeReport wake(const std::vector<MempoolId_t>& ids, HostMemory memory = HostMemory::kKeep);
  /// Whether the pool sleeps.
  bool isAsleep(MempoolId_t id) const;
  /// How to keep the bytes of the block at `pointer` when its pool sleeps, whatever sleep says,
  /// until it is freed. InvalidArgument for a pointer that is no block's, or a block's of the
  /// default pool; std::bad_alloc.
  void setContents(void* pointer, Contents contents);
  /// Copies to `to`, in the host's memory, the `bytes` that lay at `from` when its pool fell
  /// asleep. False, copying nothing, if not all of them were saved, or if no such pool sleeps. A
  /// pool that woke with HostMemory::kKeepSaved counts, for blocks that were not freed since.
  bool copySaved(void* to, const void* from, std::size_t bytes) const;
  /// Gives back the pinned host memory that is kept, also what kKeepSaved has kept.
  void trimHostMemory();
  /// Called by sleep and wake, before and after, without a lock held. After kBeforeSleep comes
  /// kAfterSleep, or kAfterWake if the pools did not fall asleep; the same the other way round. An
  /// exception before refuses the verb: then all hooks get that end, also those that were not
  /// called before. An exception after it reaches the caller once all were called; the pools stay
  /// as the moment says. CachingAllocator::detach takes it away.
  HookId attachSleepHook(std::function<void(const SleepNotice&)> hook);

  // ---- What a pool holds: live or draining -----------------------------------------------------

  /// Whether the blocks held in the pool are exactly these.
  bool checkPoolLiveAllocations(MempoolId_t id, const std::set<void*>& expected) const;
  /// The blocks held in the pool.
  PoolCheckpoint getCheckpointState(MempoolId_t id) const;
  /// Makes exactly the blocks of the checkpoint live, at their addresses. Frees each live block
  /// that is not in the checkpoint. Allocates each checkpoint block that is not live. PoolError,
  /// changing nothing, when the pool no longer has that memory, when a hold keeps it at another
  /// address, or when a block's stream cannot be
  /// ordered after other streams' work with the memory. Pre: nobody else uses the pool meanwhile.
  CheckpointDelta setCheckpointPoolState(const PoolCheckpoint& checkpoint);
  /// The pool's present holdings. Only the `current` fields are set.
  MemoryStats::Values memoryStats(MempoolId_t id) const;

  CachingAllocator& allocator();
  Device& device();
  /// The parts of Pools, for Cistern's own folders: programs use the verbs.
  PoolRegistry& registry() { return *registry_; }

 private:
  std::unique_ptr<PoolRegistry> registry_;
};

/// The traits of a MemPool.
struct MemPoolOptions {
  std::shared_ptr<SegmentSource> allocator = nullptr;  ///< supplies its segments; null: the device
  bool is_user_created = true;                         ///< which counter its id comes from
  bool use_on_oom = false;  ///< the default pool takes from it rather than fail
  bool no_split = false;    ///< each block has a segment of its own
  /// kHost: its memory is the host's, which the device reaches over the bus (docs/overflow.md)
  Location location = Location::kDevice;
  bool one_handle = false;           ///< PoolTraits::one_handle
  std::uint64_t limit = UINT64_MAX;  ///< Pools::setLimit
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
  /// Allocates in this pool as Pools::allocate does; for worker threads.
  void* allocate(std::size_t bytes, Stream stream, std::size_t alignment = 512) {
    return pools_.allocate(bytes, stream, id_, alignment);
  }
  void emptyCache() { pools_.emptyCache(id_); }
  Pools& pools() const { return pools_; }

 private:
  Pools& pools_;
  const MempoolId_t id_;
};

/// While it lives, requests of the calling thread, or those that the filter catches, go to the
/// pool. A thread's own scope ends on the thread that it began on, or with that thread.
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
