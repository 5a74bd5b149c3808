// What the tests of pending frees share: blocks that wait, and the order in which they are let go.
#pragma once

#include <mutex>

#include "allocator/engine/events/pending_frees.hpp"
#include "tests/engine/parts_support.hpp"

namespace cistern::test {

struct PendingRig : Parts {
  explicit PendingRig(sim::SimConfig config = simOf(kGiB)) : Parts(std::move(config)) {}

  /// A block that was freed while `users` may still use it, and hangs on them from now on.
  Block& freed(const StreamUses& users) {
    Block& block = pendingBlock();
    pending.add({&block, false, false}, users);
    return block;
  }
  /// The same without its streams being known yet.
  Block& pendingBlock() {
    Block& block = allocate(home, kMiB);
    const MutexLock lock(home.mutex());
    (void)home.setPending(block);
    return block;
  }
  /// Those that were released since it was asked last, in that order.
  std::vector<Block*> released() {
    const std::lock_guard lock(mutex);
    return std::exchange(out, {});
  }
  void noteReleased(const PendingFrees::Pending& one) {
    release(*one.block);
    const std::lock_guard lock(mutex);
    out.push_back(one.block);
    last = one;
  }

  Heap& home{heapOf(stream())};
  std::mutex mutex;
  std::vector<Block*> out;
  PendingFrees::Pending last;
  PendingFrees pending{device, events, streams,
                       [this](const PendingFrees::Pending& one) { noteReleased(one); }};
};

using Blocks = std::vector<Block*>;

}  // namespace cistern::test
