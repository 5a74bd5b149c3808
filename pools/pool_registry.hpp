// The pools of one allocator, their users, and the requests that go to them.
//
//   live      use count > 0: its users are MemPools, graphs, and callers of createOrIncrefPool
//   draining  the last user has let go. Blocks held stay valid and are freed into it. Its free
//             memory goes back to the device at the next emptyCache, or to a request that needs it
//   gone      its memory has left; its name means nothing any more
//
// A program sees it as Pools (cistern/pool.hpp), which documents each verb.
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
#include "allocator/engine/ground/holds.hpp"
#include "allocator/engine/ground/hooks.hpp"
#include "cistern/pool.hpp"
#include "pools/retired_graphs.hpp"
#include "pools/scopes.hpp"

namespace cistern {

class PoolRegistry final {
 public:
  /// One for each allocator, which must outlive it.
  explicit PoolRegistry(CachingAllocator& allocator);
  /// Pre: isHere(); no graph, MemPool or scope of it is left. Waits for replays that are still
  /// queued. The device may not confirm that they are complete, because it fails or a stream of
  /// theirs is being captured. Then their memory stays in place as long as the allocator lives.
  ~PoolRegistry();
  PoolRegistry(const PoolRegistry&) = delete;
  PoolRegistry& operator=(const PoolRegistry&) = delete;

  // Pools documents each of these.
  void createOrIncrefPool(MempoolId_t id, const PoolTraits& traits = {});
  void releasePool(MempoolId_t id);
  int getPoolUseCount(MempoolId_t id) const;
  void beginAllocateToPool(MempoolId_t id, const PoolFilter& filter);
  void endAllocateToPool(MempoolId_t id);
  void* allocate(std::size_t bytes, Stream stream, MempoolId_t id);
  void setUseOnOOM(MempoolId_t id, bool use);
  void setNoSplit(MempoolId_t id);
  void emptyCache(MempoolId_t id);
  void emptyUnowned();
  bool checkPoolLiveAllocations(MempoolId_t id, const std::set<void*>& expected) const;
  PoolCheckpoint getCheckpointState(MempoolId_t id) const;
  CheckpointDelta setCheckpointPoolState(const PoolCheckpoint& checkpoint);
  MemoryStats::Values memoryStats(MempoolId_t id) const;

  /// isHere: whether this process made it. mayLetGo: whether a user that ends by itself may let go
  /// of its pool. It may not at exit, nor in a child of fork.
  bool isHere() const noexcept { return made_.isHere(); }
  bool mayLetGo() const noexcept { return made_.isHere() && driverMayBeCalled(); }

  /// Throws Error in a child of fork. For verbs.
  PoolRegistry& here(const char* verb) {
    made_.requireHere(verb);
    return *this;
  }

  // For users that let go by themselves: MemPools, their scopes, graphs.
  /// Adds a user; makes the pool if it does not exist.
  void count(MempoolId_t id, const PoolTraits& traits);
  void letGo(MempoolId_t id) noexcept;
  /// The same, calling nothing of the program's: the caller may hold a lock.
  void letGoQuietly(MempoolId_t id) noexcept;
  /// Lets go of pools and graphs' memory that nothing uses any more.
  void tidy() noexcept;
  std::uint64_t beginScope(MempoolId_t id, const PoolFilter& filter);
  bool endScope(std::uint64_t number) noexcept;

  // For graphs and their captures. A use that ends with the Captured.
  std::shared_ptr<Captured> keep(MempoolId_t id);
  std::shared_ptr<Recording> beginCapture(MempoolId_t id, Stream origin);
  Footprint endCapture(Recording& recording) noexcept;
  bool keepInCapture(Stream stream, const std::shared_ptr<Captured>& held);
  void trim(MempoolId_t id, std::uint64_t bytes);

  RetiredGraphs retired;  ///< goes while this object is whole: each lets go of its pool

  CachingAllocator& allocator() { return allocator_; }
  Device& device() { return allocator_.device(); }

 private:
  struct Entry {
    Pool* pool;
    int uses;  ///< of graphs, MemPools and their scopes, and of callers of verbs
    int kept;  ///< those of the former: releasePool may not take them
    /// Its own id, which moves to the draining ids once nobody uses it.
    std::list<MempoolId_t> own;
    std::list<MempoolId_t>::iterator self;
  };
  /// Keeps a pool, live or draining, from going while a verb works on it.
  struct Visit {
    Pool& pool;
    std::shared_ptr<void> token;
  };

  const Entry& entry(const char* verb, MempoolId_t id) const CISTERN_REQUIRES(mutex_);
  Pool& live(const char* verb, MempoolId_t id) const CISTERN_REQUIRES(mutex_);
  Entry& makeOrCount(const char* verb, MempoolId_t id, const PoolTraits& traits)
      CISTERN_REQUIRES(mutex_);
  void uncount(MempoolId_t id) noexcept;
  void dropUse(MempoolId_t id) noexcept CISTERN_REQUIRES(mutex_);
  void tellReleased() noexcept;
  [[noreturn]] void refuse(const char* verb, MempoolId_t id, const std::string& why) const
      CISTERN_REQUIRES(mutex_);
  void followScopes() noexcept CISTERN_REQUIRES(mutex_);
  std::uint64_t beginScopeOf(MempoolId_t id, const PoolFilter& filter, Scopes::EndedBy ended_by);
  Visit visit(const char* verb, MempoolId_t id) const;
  bool tidyForMemory(Tidying why);
  std::vector<PoolTraits> closeDrained(std::size_t looks) CISTERN_REQUIRES(mutex_);
  void lookFirstAt(MempoolId_t id) noexcept;
  CachingAllocator& allocator_;
  const Birthplace made_;
  /// The allocator keeps them too: a request may be using them when this object goes.
  const std::shared_ptr<Scopes> kept_scopes_;
  Scopes& scopes_ = *kept_scopes_;
  mutable Mutex mutex_;  ///< before the allocator's locks, but for those of its hooks
  std::map<MempoolId_t, Entry> entries_ CISTERN_GUARDED_BY(mutex_);
  /// Pools without a user: the next to look at comes first.
  std::list<MempoolId_t> draining_ids_ CISTERN_GUARDED_BY(mutex_);
  std::atomic<int> draining_{0};  ///< their number
  /// Pools whose last user has let go, with room for each entry. Observers know the first told_.
  std::vector<MempoolId_t> released_ CISTERN_GUARDED_BY(mutex_);
  std::size_t told_ CISTERN_GUARDED_BY(mutex_) = 0;  ///< releases reported to observers
  std::atomic<std::size_t> untold_{0};               ///< releases not yet reported
  HookId tidier_;
};

}  // namespace cistern
