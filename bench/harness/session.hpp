// One case on one allocator: opened once, and kept through all repetitions, so that what is
// measured is a cache at work and not its first growth.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "bench/harness/case.hpp"

namespace cistern::bench {

/// How many steps a thread makes between two looks at the clock.
std::size_t batchOf(const Case& what, const PeerEntry& entry);

class Session {
 public:
  Session(const Case& what, const PeerEntry& entry);

  /// Starts a new measurement. No thread may be in run().
  void restart();
  /// Thread `index` makes one batch of steps. False when memory ran out.
  bool run(std::size_t index);
  /// Thread `index` is done for now.
  void leave(std::size_t index) { threads_[index].lane->leave(); }

  /// Wall time over the steps of one thread: with T threads that do not disturb each other, what
  /// one thread takes alone. Call it when all threads are done.
  double nanosecondsPerStep() const;

 private:
  // A cache line or two each: threads write here between batches.
  struct alignas(128) Thread {
    std::unique_ptr<Lane> lane;
    double nanoseconds = 0;
    std::size_t steps = 0;
  };

  std::size_t batch_;
  std::unique_ptr<Peer> peer_;
  std::vector<Thread> threads_;  ///< destroyed before the peer, to which their blocks belong
};

}  // namespace cistern::bench
