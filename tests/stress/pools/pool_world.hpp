// What the threads of a round share: a simulated device, an allocator on it, its pools, and the
// model of what the program has. A round ends with everything given back, and the device as it was.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/stress/pools/calls.hpp"
#include "tests/stress/pools/config.hpp"
#include "tests/stress/pools/log.hpp"
#include "tests/stress/pools/model.hpp"
#include "tests/stress/pools/oracle.hpp"
#include "tests/stress/pools/pinned.hpp"
#include "tests/stress/pools/random.hpp"
#include "tests/stress/pools/shared.hpp"
#include "tests/support/quiet_device.hpp"

namespace cistern::storm {

class CapturedGraph;

class World {
 public:
  static constexpr std::size_t kOpenPools = 5;  ///< the first is the default pool

  World(std::uint64_t seed, std::size_t threads, Counts& counts);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Nobody works any more: gives everything back, and looks at what is left.
  void finish();

  // ---- Blocks (pool_world.cpp) -----------------------------------------------------------------

  /// The block that `allocate` gives, entered in the model; null when there is no memory for it.
  /// Pre: the caller uses the pool and the stream.
  HeldRef take(const PoolRef& pool, Place home, std::uint64_t bytes,
               const std::function<void*()>& allocate);
  /// Pre: the caller uses its pool, or nobody else does anything.
  void giveBack(HeldRef held);
  /// Pre: some uses of the block are untold. Its stream follows them before it is used again.
  void freeUntold(Held& held);
  /// The block's stream follows its untold uses, if there are any. Pre: as giveBack's.
  void followUntold(Held& held);
  /// The model's part of both.
  void enter(Held& held);
  void leave(const Held& held);
  void shelve(HeldRef held);
  /// A block of the pool, now the caller's; null when there is none.
  HeldRef unshelve(PoolModel& pool, Random& random);

  // ---- Pools (pool_world_pools.cpp) ------------------------------------------------------------

  /// One that a request can name, or the default one.
  PoolRef openPool(Random& random);
  /// Any that there is, also one that its user has let go of.
  PoolRef anyPool(Random& random);
  /// A new pool in that place, from 1 on. The one that was there is retired, with its MemPool.
  PoolRef renewPool(std::size_t place, Random& random);
  /// The pool of a capture that was given none.
  PoolRef adoptPool(MempoolId_t id);
  /// Forgets pools that are over.
  void sweep();

  // ---- Graphs ----------------------------------------------------------------------------------

  void keepGraph(std::unique_ptr<CapturedGraph> graph);
  /// One of them, now the caller's; null when there is none.
  std::unique_ptr<CapturedGraph> takeGraph(Random& random);
  std::size_t graphCount();

  // ---- Looking ---------------------------------------------------------------------------------

  /// A device call has failed in a verb: is that allowed?
  void expected(const DeviceFailure& failure, const char* verb) const;
  /// While nobody else does anything: the statistics against the model.
  void checkStatistics();
  void checkRaces();

  /// Another reclaim callback takes the place of the one that there is.
  void replaceCallback();

  Place placeOf(std::size_t slot) const { return {slot, slots[slot].generation}; }

  const Config config;
  Counts& counts;
  test::QuietDevice quiet;  ///< what the simulated device asks for of the host does not fail
  sim::SimDevice& device;
  Oracle oracle;
  std::vector<Slot> slots;  ///< the first has the default stream
  std::atomic<std::uint64_t> stamps{0};

 private:
  /// Goes when the allocator has gone, which gives back all that it has.
  struct AfterAllocator {
    World& world;
    ~AfterAllocator() { world.checkReturned(); }
  };
  AfterAllocator after_allocator_{*this};

 public:
  CachingAllocator allocator;
  std::unique_ptr<Pools> pools;
  Pinned pinned{quiet};
  Shared sharing;

 private:
  void attachHooks();
  /// On the device, or the host waits.
  void followUntold(Held& held, bool on_device);
  PoolRef makePool(MempoolId_t id);
  MemPoolOptions poolOptions(Random& random);
  std::vector<PoolRef> allPools();
  std::function<bool(const MemoryShortage&)> onShortage();
  bool freeSomething();
  void onRelease();
  void onMemory(const MemoryNotice& notice);
  void resetGraphs();
  void emptyShelves();
  void endPools();
  void checkEnd();
  void checkReturned();

  std::atomic<std::int64_t> blocks_{0}, bytes_{0};
  std::atomic<std::uint64_t> pool_numbers_{0};
  std::mutex pools_mutex_;
  std::vector<PoolRef> open_, retired_;
  std::mutex graphs_mutex_;
  std::vector<std::unique_ptr<CapturedGraph>> graphs_;
  std::atomic<bool> over_{false};  ///< hooks take nothing any more
  std::mutex hooks_mutex_;         ///< held by no verb's caller: a callback takes it
  HookId reclaim_;
  HookId memory_hook_;
  std::uint64_t notices_ = 0;  ///< that the hook for memory has heard
  Random hooks_random_;
};

}  // namespace cistern::storm
