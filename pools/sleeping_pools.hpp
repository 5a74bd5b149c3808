// The pools of one allocator that sleep, and what falling asleep and waking take beside their
// memory: that nobody uses them meanwhile, and that the program's hooks are called.
#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/sleep/falling_asleep.hpp"
#include "cistern/sleep.hpp"
#include "pools/captured_graphs.hpp"
#include "pools/pool_users.hpp"

namespace cistern {

/// Thread-safe: one thread at a time puts pools to sleep, or wakes some. Pools (cistern/pool.hpp)
/// says what each verb promises.
class SleepingPools {
 public:
  using Ids = std::vector<MempoolId_t>;

  SleepingPools(Engine& engine, PoolUsers& users, CapturedGraphs& graphs)
      : engine_(engine),
        users_(users),
        graphs_(graphs),
        memory_(engine.device, engine.sleep_bytes) {}
  /// Pools that sleep still lose their contents. The host memory goes back, if the driver may still
  /// be called.
  ~SleepingPools();
  SleepingPools(const SleepingPools&) = delete;
  SleepingPools& operator=(const SleepingPools&) = delete;

  /// `after`: waits for that stream, and for those that own, recorded or replayed the memory. Null:
  /// for the whole device.
  SleepReport sleep(const Ids& ids, const Stream* after, Contents contents);
  WakeReport wake(const Ids& ids, HostMemory memory);
  bool copySaved(void* to, Address from, std::uint64_t bytes);
  void giveHostMemoryBack();

  /// Whether any pool sleeps, or has its bytes kept.
  bool any() const { return count_.load(std::memory_order_relaxed) > 0; }
  /// Wakes pools that nobody uses any more and that hold nothing, so that they can go: of those
  /// that PoolUsers::closeDrained(looks) looks at next. Passes over them if another thread is at
  /// it, if a verb works with them, or if the device or the host refuses. Bytes that were kept of
  /// such a pool go, too.
  void tidy(std::size_t looks) noexcept;

 private:
  SleepReport sleepNow(const Ids& ids, const Stream* after, Contents contents);
  struct Chosen;
  struct Attempt;
  static std::uint64_t reservedBy(const Chosen& chosen);
  void begin(Chosen& chosen);
  void waitFor(const Chosen& chosen, const Stream* after);
  void waitFor(Stream stream);
  std::vector<Stream> usersOf(const Chosen& chosen) const;
  void fallAsleep(Chosen& chosen, Contents contents, SleepReport& report) CISTERN_REQUIRES(turn_);
  void cancel(const Chosen& chosen) noexcept;
  Attempt tryToWake(const Ids& ids, HostMemory memory);
  std::optional<Request> wakeNow(const Ids& ids, HostMemory memory, WakeReport& report)
      CISTERN_REQUIRES(turn_);
  void letGo(MempoolId_t id, HostMemory memory) noexcept CISTERN_REQUIRES(turn_);
  void forget(MempoolId_t id) noexcept CISTERN_REQUIRES(turn_);
  void forgetGone() noexcept CISTERN_REQUIRES(turn_);
  void count() CISTERN_REQUIRES(turn_) { count_ = pools_.size() + kept_.size(); }
  bool holdsBlocks(const Pool& pool) const;
  std::uint64_t keptBytes() const CISTERN_REQUIRES(turn_);

  Engine& engine_;
  PoolUsers& users_;
  CapturedGraphs& graphs_;
  Mutex turn_{LockRank::kSleeping};
  SleepMemory memory_ CISTERN_GUARDED_BY(turn_);
  std::map<MempoolId_t, SleepingPool> pools_ CISTERN_GUARDED_BY(turn_);
  /// Pools that are awake, as they slept last: HostMemory::kKeepSaved. `pool` may be gone.
  std::map<MempoolId_t, SleepingPool> kept_ CISTERN_GUARDED_BY(turn_);
  std::atomic<std::size_t> count_{0};  ///< of both
};

}  // namespace cistern
