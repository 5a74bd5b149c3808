#include "interop/command/plot/peaks.hpp"

#include <algorithm>
#include <cmath>

namespace cistern::command {
namespace {

constexpr double kAbove = 8;  // of the circle's middle
constexpr double kNear = 40;  // so far apart in height, two stacks do not meet as a rule

bool near(const Peak& a, const Peak& b) {
  return std::abs(a.x - b.x) < kPeakWidth && std::abs(a.y - b.y) < kNear;
}

}  // namespace

std::vector<std::pair<Peak, double>> stacked(std::vector<Peak> peaks) {
  std::stable_sort(peaks.begin(), peaks.end(),
                   [](const Peak& a, const Peak& b) { return a.y < b.y; });
  std::vector<std::pair<Peak, double>> placed;
  while (!peaks.empty()) {
    const Peak highest = peaks.front();
    const auto end = std::stable_partition(peaks.begin(), peaks.end(),
                                           [&](const Peak& peak) { return near(peak, highest); });
    const double lines = double(end - peaks.begin());
    double y = std::max(highest.y - kAbove - kPeakHeight * (lines - 1), kHighestPeak);
    for (auto peak = peaks.begin(); peak != end; ++peak, y += kPeakHeight)
      placed.emplace_back(*peak, y);
    peaks.erase(peaks.begin(), end);
  }
  return placed;
}

}  // namespace cistern::command
