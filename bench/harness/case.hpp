// A case: what is timed, the same for every allocator. workloads/ makes them, session.hpp runs one
// of them on one allocator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "bench/peers/peer.hpp"

namespace cistern::bench {

/// One thread's part of a case. Made and destroyed while no thread runs.
class Lane {
 public:
  virtual ~Lane() = default;
  /// Makes `steps` steps, going on where the last call stopped. False when memory ran out.
  virtual bool run(std::size_t steps) = 0;
  /// Frees what the thread must free before it ends. Not timed.
  virtual void leave() {}
};

struct Case {
  std::string name;            ///< "churn/1000"
  std::uint64_t blocks = 1;    ///< live at once, at most
  std::uint64_t bytes = 0;     ///< live at once, at most
  std::uint64_t largest = 0;   ///< block
  std::size_t batch = 1000;    ///< steps between two looks at the clock
  bool whole_batches = false;  ///< a batch may not be cut, not even for slow allocators
  int threads = 1;
  bool own_streams = true;  ///< one for each thread; otherwise one for all of them
  std::function<std::unique_ptr<Lane>(Peer&, Stream)> lane;
};

}  // namespace cistern::bench
