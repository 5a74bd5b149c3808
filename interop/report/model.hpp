// The model of a report: all that its page draws, as one JSON object. docs/report.md has its
// fields.
#pragma once

#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "interop/report/subject.hpp"

namespace cistern::report {

struct Making {
  std::string made_by;   ///< "Cistern 0.1.0"
  std::string command;   ///< the command line that made it
  bool windows = true;   ///< whether the exact parts of the map go in, which are most of its size
  bool compare = false;  ///< whether the second subject is to be compared with the first
};

/// Pre: each recording keeps its invariants. With `compare` there are two subjects. Throws
/// InvalidArgument if a recording has too many events, or none.
nlohmann::json modelOf(std::span<const Subject> subjects, const Making& making);

}  // namespace cistern::report
