#include "interop/command/plot/labels.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "interop/command/replay/grouped.hpp"

namespace cistern::command {
namespace {

/// Labels that touch. Each wants its place in the row to begin at `wanted` / `count`, the mean of
/// what its labels want.
struct Row {
  double wanted = 0;  ///< of all its labels, as if each were the first
  std::size_t count = 0;

  double begin(double height, double top, double bottom) const {
    const double last = std::max(top, bottom - height * double(count - 1));
    return std::clamp(wanted / double(count), top, last);
  }
};

}  // namespace

// From the top down, each is a row of its own at first, and joins the row above it where it would
// overlap that.
std::vector<double> spread(const std::vector<double>& wanted, double height, double top,
                           double bottom) {
  std::vector<std::size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return wanted[a] < wanted[b]; });
  std::vector<Row> rows;
  for (const std::size_t label : order) {
    Row row{wanted[label], 1};
    while (!rows.empty() &&
           rows.back().begin(height, top, bottom) + height * double(rows.back().count) >
               row.begin(height, top, bottom)) {
      const Row above = rows.back();
      rows.pop_back();
      const double shift = height * double(above.count) * double(row.count);
      row = {above.wanted + row.wanted - shift, above.count + row.count};
    }
    rows.push_back(row);
  }
  std::vector<double> places(wanted.size());
  auto label = order.begin();
  for (const Row& row : rows) {
    const double begin = row.begin(height, top, bottom);
    for (std::size_t i = 0; i < row.count; ++i) places[*label++] = begin + height * double(i);
  }
  return places;
}

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

namespace {

constexpr double kUp = 6, kAcross = 8;  // ticks

struct Unit {
  const char* name;
  double size;
  double least;  ///< what is less is counted in a smaller unit
};

constexpr Unit kBytes[] = {{"TiB", double(kTiB), double(4 * kTiB)},
                           {"GiB", double(kGiB), double(kGiB)},
                           {"MiB", double(kMiB), double(kMiB)},
                           {"KiB", double(kKiB), double(kKiB)},
                           {"bytes", 1, 0}};
constexpr Unit kTimes[] = {{"hours", 3.6e9, 3 * 3.6e9},
                           {"minutes", 6e7, 3 * 6e7},
                           {"seconds", 1e6, 1e6},
                           {"ms", 1e3, 1e3},
                           {"µs", 1, 0}};

const Unit& unitFor(double most, std::span<const Unit> units) {
  return *std::find_if(units.begin(), units.end(), [&](const Unit& u) { return most >= u.least; });
}

/// 1, 2 or 5 times a power of ten: the least that gives no more than `ticks` of them beside 0.
double stepFor(double most, double ticks) {
  const double least = most / ticks;
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double times : {1.0, 2.0, 5.0}) {
    if (times * power >= least * (1 - 1e-9)) return times * power;
  }
  return 10 * power;
}

std::string spelled(double number, double step) {
  if (step >= 1) return grouped(std::uint64_t(std::llround(number)));
  return fmt::format("{:.{}f}", number, int(std::ceil(-std::log10(step) - 1e-9)));
}

/// Bytes, µs and events are whole, so there is nothing between two of them.
Axis axisOf(std::uint64_t most, const Unit& unit, double ticks) {
  Axis axis{unit.name, {}};
  const double end = std::max(double(most), 1.0) / unit.size;
  const double step = std::max(stepFor(end, ticks), 1 / unit.size);
  for (int i = 0; i * step <= end * (1 + 1e-9); ++i) {
    axis.ticks.push_back({i * step * unit.size, spelled(i * step, step)});
  }
  return axis;
}

}  // namespace

Axis memoryAxis(std::uint64_t most) { return axisOf(most, unitFor(double(most), kBytes), kUp); }

Axis timeAxis(std::uint64_t most) { return axisOf(most, unitFor(double(most), kTimes), kAcross); }

Axis countAxis(std::uint64_t most) { return axisOf(most, {"events", 1, 0}, kAcross); }

}  // namespace cistern::command
