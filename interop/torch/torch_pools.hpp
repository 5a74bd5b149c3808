// The pools of one device as PyTorch counts them, over Cistern's.
//
// PyTorch names a pool, and counts its users itself (a graph, a MemPool and a region are one each).
// It says only which streams a region catches. The first request shows whether a graph is being
// captured there. So a region waits until then:
//
//   waiting --first request it catches, on a stream that is being captured--> capture
//   waiting --first request it catches, on another stream-------------------> scope
//   capture --the device has ended it, PyTorch has not----------------------> over
//
// PyTorch does not end the region of a capture that has failed, nor let go of its pool. So a region
// that is over catches nothing. It is closed, with the user that it counts, when its thread empties
// the cache (its graph is not being ended then). It is also closed when the pool is captured into
// anew, or when its pool has no other user. The objects that its filter reads may be gone, so the
// filter is no longer called.
//
// A capture's memory stays in place until PyTorch has let go of the pool. PyTorch does not report
// launches to an allocator, so a replay may still be queued then. Such a pool is kept until the
// device has come to rest, at the next emptyCache or before memory is short.
//
// Invariants: uses == calls that counted a user - calls that let one go. A pool is known to Cistern
// by one use of ours as long as uses > 0 or it is resting.
//
// Needs no header of PyTorch's: the plug-in interface (interop/plugin), which is part of the
// library, uses these pools too, and so does tests/torch.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cistern/graph.hpp"
#include "cistern/pool.hpp"
#include "cistern/statistics.hpp"

struct CUstream_st;  // what a cudaStream_t points to

namespace cistern_torch {

/// c10::MempoolId_t.
using TorchPoolId = std::pair<unsigned long long, unsigned long long>;
/// Which streams a region catches.
using Filter = std::function<bool(CUstream_st*)>;

/// The memory of a pool that the program makes.
enum class PoolMemory : std::uint8_t {
  kSegments,  ///< that stay where they are: libraries may register it (virtualSegments)
  kPages,     ///< which can sleep
  kHost,      ///< pages in host memory
};

/// That of pools which this thread makes from now on, for PyTorch. Until then kSegments.
void setPoolsAhead(PoolMemory memory);
PoolMemory poolsAhead();

/// Thread-safe. Errors are Cistern's.
class TorchPools {
 public:
  explicit TorchPools(cistern::Pools& pools);

  /// A request is about to be made on the stream. Costs one load while no region is open.
  void expect(CUstream_st* stream) {
    if (open_.load(std::memory_order_acquire) != 0) openFor(stream);
  }

  /// Whether a region is open, of a capture or of another scope.
  bool anyOpen() const { return open_.load(std::memory_order_acquire) != 0; }

  /// One user more. `source`: of a new pool; null: the device.
  void count(TorchPoolId id, std::shared_ptr<cistern::SegmentSource> source = nullptr);
  /// `on`: the stream that is captured, if the region is a graph's; nothing where that is not
  /// known.
  void begin(TorchPoolId id, Filter filter, std::optional<CUstream_st*> on = std::nullopt);
  /// The same for a region that is no graph's. PoolError, and nothing has changed, where another
  /// region of the pool is open.
  void beginScope(TorchPoolId id, Filter filter, CUstream_st* on);
  void end(TorchPoolId id);
  /// Closes what regions of the pool are open, if it was the last user.
  void release(TorchPoolId id);
  int uses(TorchPoolId id) const;
  void setLends(TorchPoolId id, bool lends);
  void setNoSplit(TorchPoolId id);
  /// {0, 0}: all but those that have users, as PyTorch does. Waits for the device, unless a capture
  /// may be under way.
  void emptyCache(TorchPoolId id);
  bool holdsExactly(TorchPoolId id, const std::unordered_set<void*>& expected) const;
  cistern::PoolCheckpoint checkpoint(TorchPoolId id) const;
  /// The same of a pool under Cistern's name.
  cistern::PoolCheckpoint held(cistern::MempoolId_t id) const {
    return pools_.getCheckpointState(id);
  }
  cistern::CheckpointDelta restore(const cistern::PoolCheckpoint& checkpoint);

  // ---- What each reserves -----------------------------------------------------------------------
  /// From now on counts what each pool reserves. It looks when a region ends, when a user lets go,
  /// and when it is asked: a pool's memory grows in regions.
  void countReserved();
  /// The bytes that each pool has reserved since it is counted. One that is gone has 0, and keeps
  /// its peak and totals until both are reset.
  std::map<TorchPoolId, cistern::StatValue> reserved();
  void resetReservedPeaks();
  void resetReservedTotals();

  /// PyTorch's name of that pool; the id itself if PyTorch has not named it.
  TorchPoolId nameOf(cistern::MempoolId_t id) const;
  /// Lets go of captured pools that nobody uses any more, once the device has done all work that is
  /// queued. False where there was none, or a capture is under way. Waits for the device.
  bool settle();

 private:
  enum class Kind { kWaiting, kScope, kCapture, kOver };
  struct Region {
    TorchPoolId id;
    Filter filter;
    std::optional<CUstream_st*> on;  ///< that is captured, if any is
    std::thread::id by;
    Kind kind = Kind::kWaiting;
    bool scope = false;                            ///< by beginScope
    bool eager = false;                            ///< of no capture that can still be ended
    bool counts = true;                            ///< its pool has it for a user
    std::uint64_t capture = 0;                     ///< the device's name of a capture
    std::unique_ptr<cistern::GraphMemory> memory;  ///< a capture's, also when it is over
  };
  struct Pool {
    cistern::MempoolId_t id;
    int uses = 0;
    bool resting = false;  ///< nobody's, but replays may be queued
    std::vector<std::unique_ptr<cistern::GraphMemory>> graphs;
  };

  void add(Region region);
  void openFor(CUstream_st* stream);
  void openCapture(CUstream_st* stream, std::uint64_t capture);
  void beginCapture(Region& region, CUstream_st* stream, std::uint64_t capture);
  void openScope(CUstream_st* stream);
  void suspendScope(TorchPoolId id);
  bool captured(Region& region);
  void findOver(std::uint64_t but = 0);
  bool mayCapture();
  void closeRegions(const std::function<bool(const Region&)>& which);
  void closeOver();
  void letGoOf(Pool& pool);
  void countOpen();
  Pool& pool(TorchPoolId id, std::shared_ptr<cistern::SegmentSource> source = nullptr);
  void forgetGone();
  const Pool& known(const char* verb, TorchPoolId id) const;
  const Pool* find(TorchPoolId id) const;
  bool settleLocked();
  void letGoOfResting();
  void noteReserved(TorchPoolId id);
  void noteAllReserved();
  void dropUnreserved();

  cistern::Pools& pools_;
  std::atomic<int> open_{0};  ///< regions that are not over
  mutable std::mutex mutex_;
  std::vector<Region> regions_;  ///< in the order of their beginnings
  std::map<TorchPoolId, Pool> table_;
  /// Not held over a verb of Cistern's: a hook that such a verb calls asks for names.
  mutable std::mutex naming_;
  std::map<cistern::MempoolId_t, TorchPoolId> names_;
  bool counts_reserved_ = false;
  std::map<TorchPoolId, cistern::StatValue> reserved_;
};

}  // namespace cistern_torch
