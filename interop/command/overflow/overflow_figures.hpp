// The figures of one program: its facts, the bound for a device of some size, and what each rule
// came to there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "interop/command/overflow/bus_meter.hpp"

namespace cistern::command {

/// The facts of a program, whatever the device's size.
struct OverflowProgram {
  std::string name;
  std::string file;  ///< empty if it is made up
  bool shares_name = false;
  std::uint64_t need = 0;           ///< the most bytes that live at once
  std::vector<std::size_t> starts;  ///< of its iterations
  std::size_t events = 0;
};

/// The bytes over the bus below which no placement can go.
struct OverflowBound {
  std::vector<std::uint64_t> by_iteration;  ///< each block is written and read once an iteration
  std::uint64_t once = 0;                   ///< each block is written and read once in its life

  std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t bytes : by_iteration) sum += bytes;
    return sum;
  }
  std::uint64_t worst() const {
    return *std::max_element(by_iteration.begin(), by_iteration.end());
  }
  /// How many iterations do not fit the device.
  std::uint64_t shortIterations() const {
    return std::uint64_t(std::count_if(by_iteration.begin(), by_iteration.end(),
                                       [](std::uint64_t bytes) { return bytes > 0; }));
  }
};

/// The result of one rule.
struct OverflowRun {
  std::string_view rule;
  std::string failure;  ///< empty when every request was served
  std::vector<BusBytes> by_iteration;

  bool ok() const { return failure.empty(); }
  BusBytes total() const {
    BusBytes sum;
    for (const BusBytes& bytes : by_iteration) sum += bytes;
    return sum;
  }
  std::uint64_t worst() const {
    std::uint64_t most = 0;
    for (const BusBytes& bytes : by_iteration) most = std::max(most, bytes.total());
    return most;
  }
};

/// A program on a device that has `share` % of its need.
struct OverflowCase {
  unsigned share = 0;
  std::uint64_t capacity = 0;  ///< the device's memory
  OverflowBound bound;
  std::vector<OverflowRun> runs;  ///< in the order of overflowRules()
};

}  // namespace cistern::command
