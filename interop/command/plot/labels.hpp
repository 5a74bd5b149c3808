// Labels that stand beside each other's ends, and would overlap where these are close.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cistern::command {

/// The place of each label: as near as possible to its place in `wanted`, `height` apart, between
/// `top` and `bottom`. Labels go below `bottom` if there is no room for all.
std::vector<double> spread(const std::vector<double>& wanted, double height, double top,
                           double bottom);

// The figures at the peaks of curves: each above its circle, and none over another.

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

// An axis from 0 up: in which unit it counts, and where its ticks are, at round numbers of that
// unit.

struct Axis {
  struct Tick {
    double at;  ///< in what the axis was made of
    std::string text;
  };
  std::string unit;         ///< "GiB"
  std::vector<Tick> ticks;  ///< the first is 0
};

/// In bytes, from 0 to `most`.
Axis memoryAxis(std::uint64_t most);
/// In µs.
Axis timeAxis(std::uint64_t most);
/// In events.
Axis countAxis(std::uint64_t most);

}  // namespace cistern::command
