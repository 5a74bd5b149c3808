// Pinned memory of graphs: what is allocated in a region of a pool stays that pool's until PyTorch
// has let go of it, as a captured copy reads its host memory at each launch.
//
// PyTorch counts the users of a pool itself. Launches are not told to an allocator, so that the
// last one may let go while a replay is queued: what the pool has kept until then rests until the
// device has.
//
//   held by the program, of a pool --freed--> kept by the pool --last user--> resting --settle-->
//   free
//                                             held by the program --last user--> an ordinary block
//
// No header of PyTorch's is needed: tests/torch has it.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "pools.hpp"

namespace cistern_torch {

/// Thread-safe. Calls of the program's (filters) are made with no lock held.
class HostPools {
 public:
  /// Whether the calling thread's request is the region's.
  using Catches = std::function<bool()>;
  /// Whether the region's stream is being captured at this moment.
  using Captured = std::function<bool()>;

  /// A region of the pool begins, which is one user more. It takes the place of one whose capture
  /// has failed: PyTorch does not end that. Throws InvalidArgument where another is open.
  void begin(TorchPoolId id, Catches catches, Captured captured);
  /// Throws InvalidArgument where none is open.
  void end(TorchPoolId id);
  /// One user less. Throws InvalidArgument for a pool that has none.
  void release(TorchPoolId id);

  /// The pool whose region catches a request that is made now; {0, 0}: none. One load while there
  /// is no region.
  TorchPoolId now() const;
  /// The block is the pool's. Ignored for a pool that has no user any more.
  void allocated(void* block, TorchPoolId id);
  /// The program frees the block. True: it is kept, and not to be freed.
  bool freed(void* block);
  /// What rests is free, by `free(block)`, once `synchronize()` says that the devices have come to
  /// rest. Nothing is done while the stream of a region is captured, where they cannot be waited
  /// for.
  template <class Synchronize, class Free>
  void settle(Synchronize synchronize, Free free) {
    if (anyCaptured()) return;
    Blocks blocks = takeResting();
    if (blocks.empty()) return;
    if (!synchronize()) return putBack(std::move(blocks));
    for (const auto& [block, id] : blocks) free(block);
  }

 private:
  using Blocks = std::map<void*, TorchPoolId>;
  struct Pool {
    int users = 0;
    Blocks kept;
  };
  struct Region {
    TorchPoolId id;
    Catches catches;
    Captured captured;
  };

  std::vector<Region> regions() const;
  bool anyCaptured() const;
  Blocks takeResting();
  void putBack(Blocks blocks);

  mutable std::mutex mutex_;
  std::map<TorchPoolId, Pool> pools_;  // under mutex_, as are
  Blocks blocks_;                      // those that the program has, of a pool
  std::vector<Region> regions_;
  Blocks resting_;
  std::atomic<int> open_{0};      ///< regions_.size()
  std::atomic<bool> any_{false};  ///< some block is, or was, a pool's
};

}  // namespace cistern_torch
