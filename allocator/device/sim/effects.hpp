// The effects of queued work, waiting for virtual time to reach them. Under the simulated device's
// lock. Read next: queued_work.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <queue>
#include <vector>

#include "allocator/device/sim/queued_work.hpp"

namespace cistern::sim {

/// Effects run in order of completion time, and in the order of queueing when that is the same.
class Effects {
 public:
  /// `work` completes at `completion`, not kNever, and then acts on `spans`. Pre: it has an effect.
  void add(std::uint64_t completion, std::shared_ptr<const Work> work, std::vector<Span> spans);
  /// Runs what is complete at `now`.
  void runUntil(std::uint64_t now);

 private:
  struct Pending {
    std::uint64_t completion;
    std::uint64_t sequence;
    std::shared_ptr<const Work> work;
    std::vector<Span> spans;
  };
  struct Later {
    bool operator()(const Pending& a, const Pending& b) const {
      return a.completion != b.completion ? a.completion > b.completion : a.sequence > b.sequence;
    }
  };

  std::priority_queue<Pending, std::vector<Pending>, Later> pending_;
  std::uint64_t next_sequence_ = 0;
};

}  // namespace cistern::sim
