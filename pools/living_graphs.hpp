// The graphs of one allocator that are captured and not reset: which streams have launched them,
// and whether their memory may be taken from under them now.
#pragma once

#include <list>
#include <set>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "cistern/types.hpp"
#include "pools/captured.hpp"
#include "pools/deferred_release.hpp"

namespace cistern {

/// A graph that is captured and not reset.
struct LivingGraph {
  const Captured* memory = nullptr;
  DeferredRelease* release = nullptr;  ///< knows the streams that it was launched on
  int launches = 0;  ///< announced, and not known to be queued: its footprint stays bound
};

/// Thread-safe. A launch has two ends, beginLaunch and endLaunch. Between them no pool that the
/// graph has memory in falls asleep.
class LivingGraphs {
 public:
  using Place = std::list<LivingGraph>::iterator;

  /// `one` holds the graph's record, which moves here. Returns its place.
  Place add(std::list<LivingGraph>& one) noexcept;
  /// The graph is reset, or about to be captured anew.
  void remove(Place graph) noexcept;

  /// The graph is about to be launched on the stream. Throws GraphError while memory of it sleeps,
  /// and std::bad_alloc; both change nothing.
  void beginLaunch(Place graph, Stream stream);
  /// The graph is about to become part of another that is being captured. Throws as beginLaunch.
  void requireBound(Place graph) const;
  /// The launch is queued, or has failed. No-op if none was announced.
  void endLaunch(Place graph) noexcept;
  /// Whether no launch is announced and all that were queued are known to be complete. Waits for
  /// nothing.
  bool idle(Place graph) noexcept;

  /// The pools fall asleep: their graphs cannot be launched from now on. Returns the streams that
  /// have launched some of them. Throws PoolError if one is being launched; std::bad_alloc. Both
  /// change nothing.
  std::vector<Stream> fallAsleep(const std::vector<MempoolId_t>& pools);
  /// Appends the results of all graphs in the pools that `of` has, in no order. Throws
  /// std::bad_alloc.
  void addResultsTo(ResultsOfPools& of) const;
  /// The pools are awake, or have not fallen asleep after all.
  void wake(const std::vector<MempoolId_t>& pools) noexcept;

 private:
  void refuseAsleep(const LivingGraph& graph) const CISTERN_REQUIRES(mutex_);

  mutable Mutex mutex_{LockRank::kLivingGraphs};
  std::set<MempoolId_t> asleep_ CISTERN_GUARDED_BY(mutex_);
  std::list<LivingGraph> graphs_ CISTERN_GUARDED_BY(mutex_);
};

}  // namespace cistern
