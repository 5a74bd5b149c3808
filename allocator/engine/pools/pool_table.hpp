// The pools of one allocator: memory kept apart begins and ends here, and is set back to what it
// was. Who uses which pool is for pools/ to say. It owns the pools' records, and knows the router.
//
// The lock comes before the backing's and heaps' locks. Thread-safe; nothing here may be called
// with a heap's lock held.
#pragma once

#include <memory>
#include <vector>

#include "allocator/engine/heap/stream_heaps.hpp"
#include "allocator/engine/pools/router.hpp"

namespace cistern {

class PoolTable {
 public:
  PoolTable(Core& core, StreamHeaps& stream_heaps) : core_(core), stream_heaps_(stream_heaps) {}

  /// A new live pool. Throws std::bad_alloc, changing nothing.
  Pool& open(MempoolId_t id, const PoolTraits& traits);
  /// The pool's blocks take whole segments from now on. False when it has memory already.
  bool setNoSplit(Pool& pool) { return pool.change(core_.whole_rules, core_.segments); }
  /// The pool's last user has let go: what lies free in it is anyone's from now on. Calls no
  /// observer.
  void drain(Pool& pool);
  /// A pool that is gone, and what was special about it.
  struct Closed {
    MempoolId_t id;
    PoolTraits traits;
  };
  /// Lets go of draining pools that hold no memory any more.
  std::vector<Closed> closeDrained();
  /// Whether there is a pool that lends to this request's.
  bool anyLenders(const Request& request) const;

  /// Keeps the router as long as the allocator lives: a request that was under way when another was
  /// set may come to it at any time.
  void keepRouter(std::shared_ptr<Router> router);
  /// Who says which pool a request goes to that names none. Null: all go to the default pool. The
  /// router is kept, or outlives requests that are under way.
  void setRouter(Router* router);
  /// Whether there is one.
  bool routed() const { return router_.load(std::memory_order_relaxed) != nullptr; }
  /// Where a request of the calling thread on the stream goes now.
  Route route(Stream stream);

  /// What the pool holds at this moment: each `current`, and nothing else.
  MemoryStats::Values stats(const Pool& pool) const;
  /// The blocks held in the pool, by address; not what it has lent to the default pool.
  std::vector<LiveBlock> liveBlocks(const Pool& pool) const;
  /// Makes the blocks of `wanted` live in the pool, at their addresses, and no others. What their
  /// streams do from now on comes after all that was done with that memory. `freed` and `made` get
  /// what changed. Returns what of `freed` other streams use, for the caller to free. Throws
  /// PoolError, changing nothing, when some of it is not the pool's any more, that order cannot be
  /// had, a block that is to be made is for a stream that was forgotten and not named since, a
  /// capture into the pool is under way, or `wanted` is not what liveBlocks can have said.
  std::vector<Address> restore(Pool& pool, const std::vector<LiveBlock>& wanted,
                               std::vector<void*>& freed, std::vector<void*>& made);

 private:
  bool closeHeaps(Pool& pool) noexcept;

  Core& core_;
  StreamHeaps& stream_heaps_;
  std::atomic<Router*> router_{nullptr};
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Pool>> pools_ CISTERN_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Router>> routers_ CISTERN_GUARDED_BY(mutex_);
};

}  // namespace cistern
