// Pinned memory of graphs. Memory that is allocated in a region of a pool belongs to the pool until
// PyTorch lets go of the pool. A captured copy reads its host memory at each launch.
//
// PyTorch counts the users of a pool itself. It does not report launches to an allocator, so the
// last user may let go while a replay is queued. Memory that the pool has kept until then rests
// until the device has come to rest.
//
//   held by the program, of a pool --freed--> kept by the pool --last user--> resting --settle-->
//   free
//                                             held by the program --last user--> an ordinary block
//
// A block that no copy has used belongs to no graph: once it is freed, the pool's next request may
// have it.
//
// No header of PyTorch's is needed: tests/torch has it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "torch_pools.hpp"

namespace cistern_torch {

/// Thread-safe. Calls of the program's (filters) are made with no lock held.
class HostPools {
 public:
  /// Whether the calling thread's request is the region's.
  using Catches = std::function<bool()>;
  /// Whether the region's stream is being captured at this moment.
  using Captured = std::function<bool()>;

  /// A region of the pool begins, which is one user more. Closes the regions of the thread, and of
  /// the pool, whose capture has failed, and lets their users go: PyTorch does not end them. Throws
  /// InvalidArgument where another of the pool is open.
  void begin(TorchPoolId id, Catches catches, Captured captured);
  /// Throws InvalidArgument where none is open.
  void end(TorchPoolId id);
  /// One user less. Throws InvalidArgument for a pool that has none.
  void release(TorchPoolId id);

  /// The pool whose region catches a request that is made now; {0, 0}: none. One load while there
  /// is no region. One that is not captured is not asked: its graph may be gone.
  TorchPoolId now() const;
  /// The block, of so many bytes, is the pool's. Ignored for a pool that has no user any more.
  void allocated(void* block, TorchPoolId id, std::size_t bytes);
  /// The smallest of the pool's that is large enough, was freed, and that no copy has used; it is
  /// the program's again. Null where there is none.
  void* take(TorchPoolId id, std::size_t bytes) noexcept;
  struct Standing {
    TorchPoolId pool{0, 0};  ///< {0, 0}: none
    bool kept = false;       ///< the program has freed it
  };
  Standing standingOf(void* block) const;
  /// Work on a stream, a captured copy perhaps, uses the block. Any block may come here.
  void used(void* block) noexcept;
  /// The program frees the block. True: it is kept, and not to be freed.
  bool freed(void* block);
  /// Frees the resting blocks, by `free(block)`, once `synchronize()` says that the devices have
  /// come to rest. Does nothing while the stream of a region is captured, because then it cannot
  /// wait for the devices.
  template <class Synchronize, class Free>
  void settle(Synchronize synchronize, Free free) {
    if (anyCaptured()) return;
    Blocks blocks = takeResting();
    if (blocks.empty()) return;
    if (!synchronize()) return putBack(std::move(blocks));
    for (const auto& [block, of] : blocks) free(block);
  }

 private:
  struct Block {
    TorchPoolId pool;
    std::size_t bytes;
    bool used = false;
  };
  using Blocks = std::map<void*, Block>;
  struct Pool {
    int users = 0;
    Blocks kept;    ///< freed, of a graph perhaps
    Blocks unused;  ///< freed, of none
  };
  struct Region {
    TorchPoolId id;
    Catches catches;
    Captured captured;
    std::thread::id by;
    std::uint64_t number = 0;
  };

  std::vector<Region> regions() const;
  bool anyCaptured() const;
  void close(std::uint64_t number);
  void letGo(TorchPoolId id);
  Blocks takeResting();
  void putBack(Blocks blocks);

  mutable std::mutex mutex_;
  std::map<TorchPoolId, Pool> pools_;  // under mutex_, as are
  Blocks blocks_;                      // those that the program has, of a pool
  std::vector<Region> regions_;
  std::uint64_t last_ = 0;  // region's number
  Blocks resting_;
  std::atomic<int> open_{0};      ///< regions_.size()
  std::atomic<bool> any_{false};  ///< some block is, or was, a pool's
};

}  // namespace cistern_torch
