// The retired graphs of one allocator. A graph is retired from its reset until the replays that
// were queued by then are complete. Until then its memory may still be in use.
#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <optional>

#include "allocator/base/mutex.hpp"
#include "pools/deferred_release.hpp"

namespace cistern {

/// Thread-safe. Nothing here may be called with the lock of the pools' users held: what goes lets
/// go of its pool.
class RetiredGraphs {
 public:
  bool any() const { return count_ != 0; }
  /// Takes graphs that were reset, from a list that is empty afterwards. Events are recorded on
  /// their streams now, as these may be destroyed later.
  void add(std::list<DeferredRelease>& graphs) noexcept;
  /// Lets go of the memory of graphs, among the next `looks`, whose replays are complete. If there
  /// is none, `wait` waits for the replays of all graphs. True if it let go of any.
  bool letGo(std::size_t looks, bool wait) noexcept;
  /// Waits for replays whose end no query can tell: of graphs that hold memory of the pool, or of
  /// all graphs. Lets go of nothing.
  void waitForUnknown(std::optional<MempoolId_t> pool) noexcept;
  /// Memory whose replays are not known to be complete stays in place, for good.
  void keepForGood() noexcept;

 private:
  std::list<DeferredRelease> takeComplete(std::size_t looks) noexcept CISTERN_REQUIRES(mutex_);
  void putBack(std::list<DeferredRelease>& graphs) noexcept;

  Mutex mutex_{LockRank::kRetired};  ///< the progress of replays is queried under it
  std::list<DeferredRelease> graphs_
      CISTERN_GUARDED_BY(mutex_);      ///< the next to look at comes first
  std::atomic<std::size_t> count_{0};  ///< in graphs_, for threads without the lock
};

}  // namespace cistern
