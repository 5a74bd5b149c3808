#include "interop/command/plot/axis.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "interop/command/replay/grouped.hpp"

namespace cistern::command {
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
