// An axis from 0 up: in which unit it counts, and where its ticks are, at round numbers of that
// unit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cistern::command {

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
