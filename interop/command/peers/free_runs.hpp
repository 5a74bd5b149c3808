// Free address space in runs, found by size: the smallest that fits, and of those of one size the
// one that became free first. Neighbours join as they are added. It knows no device.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "cistern/types.hpp"

namespace cistern::command {

class FreeRuns {
 public:
  struct Run {
    std::uint64_t bytes = 0;
    std::uint64_t age = 0;  ///< smaller is older
    std::uint64_t use = 0;  ///< the owner's number for the last use of any of it
  };
  using Runs = std::map<Address, Run>;

  /// Pre: none of it is in a run. Joined memory has the run's age and the later use of the two.
  void add(Address address, Run run);
  /// The address of the best fit.
  std::optional<Address> bestFit(std::uint64_t bytes) const;
  /// Removes the whole run that begins there. Pre: one does.
  Run take(Address address);
  /// Removes everything in [begin, end); the rest of runs stays.
  void cutOut(Address begin, Address end);

  const Runs& runs() const { return runs_; }

 private:
  using Key = std::tuple<std::uint64_t, std::uint64_t, Address>;  // bytes, age, where
  static Key keyOf(Address address, const Run& run) { return {run.bytes, run.age, address}; }

  Runs runs_;
  std::set<Key> by_size_;  ///< all of them
};

}  // namespace cistern::command
