// The pools of one allocator: which there are, who uses them, and which requests are theirs.
//
//   live      use count > 0: its users are MemPools, graphs, and whoever called createOrIncrefPool
//   draining  the last user has let go; blocks held stay valid and are freed into it, and what lies
//             free goes back to the device at the next emptyCache, or to whoever needs it
//   gone      its memory has left; its name means nothing any more
//
// docs/pools.md answers what a user asks. Read next: mem_pool.hpp, graph.hpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "allocator/base/process.hpp"
#include "allocator/engine/caching_allocator.hpp"
#include "pools/checkpoint.hpp"
#include "pools/mempool_id.hpp"
#include "pools/pool_filter.hpp"
#include "pools/retirement.hpp"
#include "pools/scopes.hpp"

namespace cistern {

/// All verbs are thread-safe. They throw PoolError, changing nothing, for an id that is not a live
/// pool's unless said otherwise.
class Pools final {
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
  /// and their scopes, which let go by themselves, or when a scope would be left without its pool.
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

  CachingAllocator& allocator() { return allocator_; }
  Device& device() { return allocator_.device(); }

 private:
  friend class Captured;
  friend class Graph;
  friend class MemPool;
  friend class MemPoolScope;

  struct Entry {
    Pool* pool;
    int uses;  ///< of graphs, MemPools and their scopes, and of whoever called a verb
    int kept;  ///< the former of them: not for releasePool to take
  };
  /// Keeps a pool, live or draining, from going while something is done with it.
  struct Visit {
    Pool& pool;
    std::shared_ptr<void> token;
  };

  const Entry& entry(const char* verb, MempoolId_t id) const CISTERN_REQUIRES(mutex_);
  Pool& live(const char* verb, MempoolId_t id) const CISTERN_REQUIRES(mutex_);
  Entry& makeOrCount(const char* verb, MempoolId_t id, const PoolTraits& traits)
      CISTERN_REQUIRES(mutex_);
  void count(MempoolId_t id, const PoolTraits& traits);
  void letGo(MempoolId_t id) noexcept;
  void letGoQuietly(MempoolId_t id) noexcept;
  void uncount(MempoolId_t id) noexcept;
  void dropUse(MempoolId_t id) noexcept CISTERN_REQUIRES(mutex_);
  void tellReleased() noexcept;
  [[noreturn]] void refuse(const char* verb, MempoolId_t id, const std::string& why) const
      CISTERN_REQUIRES(mutex_);
  void followScopes() noexcept CISTERN_REQUIRES(mutex_);
  std::uint64_t beginScopeOf(MempoolId_t id, const PoolFilter& filter);
  Visit visit(const char* verb, MempoolId_t id) const;
  void tidy() noexcept;
  bool tidyForMemory(Tidying why);
  std::vector<PoolTraits> closeDrained() CISTERN_REQUIRES(mutex_);
  /// How many reset graphs are looked at, and whether those are waited for that are not complete.
  enum class Retire : std::uint8_t { kSome, kAll, kWaitingForAll };
  bool letRetire(Retire which) noexcept;
  void retireAgain(std::list<Retirement>& retirements) noexcept;
  void waitForUnknown(std::optional<MempoolId_t> id) noexcept;

  /// Whether what ends by itself may let go of what it has: neither at exit nor in a child of fork.
  bool mayLetGo() const noexcept { return made_.isHere() && driverMayBeCalled(); }

  // For MemPoolScope, which lets go by itself.
  std::uint64_t beginScope(MempoolId_t id, const PoolFilter& filter);
  bool endScope(std::uint64_t number) noexcept;

  // For graphs and their captures. A use that ends with the Captured.
  std::shared_ptr<Captured> keep(MempoolId_t id);
  std::shared_ptr<Recording> beginCapture(MempoolId_t id, Stream origin);
  Pins endCapture(Recording& recording) noexcept;
  bool keepInCapture(Stream stream, const std::shared_ptr<Captured>& held);
  void trim(MempoolId_t id, std::uint64_t bytes);
  void retire(std::list<Retirement>& retirement) noexcept;

  Pools(CachingAllocator& allocator, std::shared_ptr<Scopes> scopes);

  CachingAllocator& allocator_;
  const Birthplace made_;
  /// The allocator keeps them too: a request may be asking them when this goes.
  const std::shared_ptr<Scopes> kept_scopes_;
  Scopes& scopes_ = *kept_scopes_;
  mutable Mutex mutex_;  ///< before the allocator's locks, but for those of its hooks
  std::map<MempoolId_t, Entry> entries_ CISTERN_GUARDED_BY(mutex_);
  std::atomic<int> draining_{0};  ///< entries without a user
  /// Pools whose last user has let go, which nobody was told of yet; room for that of each entry.
  std::vector<MempoolId_t> released_ CISTERN_GUARDED_BY(mutex_);
  std::atomic<std::size_t> untold_{0};  ///< in released_
  Mutex retired_mutex_;
  std::list<Retirement> retired_ CISTERN_GUARDED_BY(retired_mutex_);
  std::atomic<std::size_t> retirements_{0};  ///< in retired_
};

/// "{0, 7}"
std::string poolName(MempoolId_t id);

}  // namespace cistern
