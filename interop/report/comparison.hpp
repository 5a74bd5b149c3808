// Two recordings side by side: what holds more memory at the second one's peak than at the first
// one's, and what holds less. Stacks and labels are matched by their names, for their numbers
// differ.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "interop/report/study.hpp"

namespace cistern::report {

/// The bytes that one stack and label hold at a peak.
struct PeakHolder {
  std::int64_t stack = -1;  ///< the number of one such stack in its recording
  std::uint64_t bytes = 0, blocks = 0;
};

/// The holders at the peak of a recording, by the text of their stack and of their label.
struct PeakHolders {
  std::map<std::pair<std::string, std::string>, PeakHolder> holders;
  std::uint64_t peak = 0;  ///< bytes asked for
};

/// The text of a stack leaves out line numbers, which change with every edit above them.
PeakHolders peakHoldersOf(const Study& study);

/// {"before": 0, "after": 1, "grew": […], "went": […], "peak": [before, after]}; most bytes first.
nlohmann::json compared(const PeakHolders& before, const PeakHolders& after);

}  // namespace cistern::report
