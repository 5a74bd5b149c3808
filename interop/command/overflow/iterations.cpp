#include "interop/command/overflow/iterations.hpp"

#include <algorithm>

#include "interop/command/overflow/lifetimes.hpp"

namespace cistern::command {
namespace {

constexpr double kValley = 0.02;
constexpr double kHill = 0.1;

// A program that has ended has given everything back, which is no floor of its iterations.
std::uint64_t floorOf(const std::vector<std::uint64_t>& living) {
  const auto events = std::ptrdiff_t(living.size());
  const auto begin = living.begin() + events / 4;
  return *std::min_element(begin, std::max(begin + 1, living.end() - events / 50));
}

}  // namespace

std::vector<std::size_t> iterationStarts(const std::vector<std::uint64_t>& living) {
  std::vector<std::size_t> starts{0};
  if (living.empty()) return starts;
  const auto floor = double(floorOf(living));
  const double height = double(needOf(living)) - floor;
  const double valley = floor + kValley * std::max(height, floor);
  const double hill = floor + kHill * height;

  bool seen_hill = false;
  std::size_t next = 0;  // begins the next iteration, behind the lowest event; 0: in no valley
  for (std::size_t event = 0; event < living.size(); ++event) {
    if (double(living[event]) > hill) {
      if (next != 0) starts.push_back(next);
      next = 0;
      seen_hill = true;
    } else if (seen_hill && double(living[event]) <= valley) {
      if (next == 0 || living[event] <= living[next - 1]) next = event + 1;
    }
  }
  return starts;
}

}  // namespace cistern::command
