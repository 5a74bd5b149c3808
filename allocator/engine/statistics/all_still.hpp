// All threads' counters, held still. Included by what reads the sums, and by nothing else.
#pragma once

#include "allocator/engine/statistics/totals.hpp"

namespace cistern {

/// Holds all threads' counters still for a scope, with what they have in the sums.
class Totals::AllStill {
 public:
  explicit AllStill(Totals& all) noexcept CISTERN_REQUIRES(all.mutex_)
      : all_(all), own_(all.mine()) {
    bool others = false;
    for (ThreadCounters* const one : all_.threads_) {
      if (one == own_) continue;
      one->gate.close();
      others = true;
    }
    if (others) BiasedGate::barrier();
    for (ThreadCounters* const one : all_.threads_) {
      if (one != own_) one->gate.awaitOwner();
      all_.fold(*one);
    }
  }
  ~AllStill() {
    all_.raisePeaks();
    for (ThreadCounters* const one : all_.threads_) {
      all_.deal(*one);
      if (one != own_) one->gate.open();
    }
  }
  AllStill(const AllStill&) = delete;
  AllStill& operator=(const AllStill&) = delete;

 private:
  Totals& all_;
  const ThreadCounters* const own_;
};

}  // namespace cistern
