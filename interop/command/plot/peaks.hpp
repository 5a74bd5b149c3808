// The figures at the peaks of curves: each above its circle, and none over another.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace cistern::command {

/// The width that a figure needs, and the distance of two lines of them.
inline constexpr double kPeakWidth = 64, kPeakHeight = 13;

struct Peak {
  double x, y;  ///< of the circle
  std::string key, stroke, fill;
  std::string figure;
};

/// Each peak with the y of its figure. Figures of peaks that are near each other are stacked above
/// the highest, in the order of their heights. The first line is at kHighestPeak or below.
std::vector<std::pair<Peak, double>> stacked(std::vector<Peak> peaks);

inline constexpr double kHighestPeak = 74;

}  // namespace cistern::command
