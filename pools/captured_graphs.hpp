// The graphs of one allocator that are captured: which streams have launched them, whether their
// memory may be taken from under them now, and which of them were reset while replays were queued.
// Until those are complete, their memory may still be in use.
#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/engine/events/pending_frees.hpp"
#include "allocator/engine/ground/holds.hpp"
#include "cistern/types.hpp"

namespace cistern {

class CapturedGraph;
struct Engine;

/// The addresses that graphs write and the program may read, by pool.
using ResultsOfPools = std::map<MempoolId_t, std::vector<AddressRange>>;

/// Thread-safe. A launch has two ends, beginLaunch and endLaunch. Between them no pool that the
/// graph has memory in falls asleep.
class CapturedGraphs {
 public:
  /// The launches of one graph. The lock here guards `announced` and `replays`; the rest is for the
  /// thread that uses the graph.
  struct Launches {
    int announced = 0;  ///< and not known to be queued: its footprint stays bound
    /// The streams that it was launched on, unless all is known to be complete. Made before it is
    /// needed, so that a graph can be reset even if the host is out of memory.
    PendingFrees::Fence replays;
    bool asked = false;                           ///< whether `queued` is for all that was launched
    std::weak_ptr<void> queued{};                 ///< is there until that is complete
    std::list<CapturedGraph*> record{};           ///< the graph, until it is captured
    std::list<CapturedGraph*>::iterator place{};  ///< among the graphs here, from then on
  };

  explicit CapturedGraphs(Engine& engine);
  /// Pools go. Memory whose replays are not known to be complete stays in place, for good.
  void keepForGood() noexcept;

  // ---- Graphs that can be launched

  void add(CapturedGraph& graph) noexcept;
  /// The graph is about to be launched on the stream. Throws GraphError while memory of it sleeps,
  /// and std::bad_alloc; both change nothing.
  void beginLaunch(CapturedGraph& graph, Stream stream);
  /// The graph is about to become part of another that is being captured. Throws as beginLaunch.
  void requireBound(const CapturedGraph& graph) const;
  /// The launch is queued, or has failed. No-op if none was announced.
  void endLaunch(CapturedGraph& graph) noexcept;
  /// Whether no launch is announced and all that were queued are known to be complete. Waits for
  /// nothing.
  bool idle(CapturedGraph& graph) noexcept;
  /// The graph is reset: it cannot be launched any more. It stays until its replays are complete.
  /// Takes no host memory.
  void retire(std::shared_ptr<CapturedGraph> graph) noexcept;

  // ---- Sleep

  /// The pools fall asleep: their graphs cannot be launched from now on. Returns the streams that
  /// have launched some of them. Throws PoolError if one is being launched; std::bad_alloc. Both
  /// change nothing.
  std::vector<Stream> fallAsleep(const std::vector<MempoolId_t>& pools);
  /// Appends the results of all graphs in the pools that `of` has, in no order. Throws
  /// std::bad_alloc.
  void addResultsTo(ResultsOfPools& of) const;
  /// The pools are awake, or have not fallen asleep after all.
  void wake(const std::vector<MempoolId_t>& pools) noexcept;

  bool keeps_for_good = false;  ///< graphs that go let go of their use of the pool only
  /// The graphs that were reset wait here for their replays. Nothing here may be called with the
  /// lock of the pools' users held: what goes lets go of its pool.
  PendingFrees retired;

 private:
  void ask(Launches& of);
  void keepUntil(PendingFrees::Fence replays, std::shared_ptr<void> kept) noexcept;
  void refuseAsleep(const CapturedGraph& graph) const CISTERN_REQUIRES(mutex_);

  std::atomic<std::size_t>& untidy_;  ///< Hooks::untidy
  mutable Mutex mutex_{LockRank::kCapturedGraphs};
  std::set<MempoolId_t> asleep_ CISTERN_GUARDED_BY(mutex_);
  std::list<CapturedGraph*> graphs_ CISTERN_GUARDED_BY(mutex_);  ///< not those that were reset
};

}  // namespace cistern
