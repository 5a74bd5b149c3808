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
  bool compare = false;  ///< whether the second subject is to be compared with the first
};

/// Pre: each recording keeps its invariants. With `compare` there are two subjects. Throws
/// InvalidArgument if a recording has too many events, or none.
nlohmann::json modelOf(std::span<const Subject> subjects, const Making& making);

/// The same as gzip, with the exact parts of the map, which are most of its size: as many as the
/// page has room for. Each part is packed as it is made, and but once. Throws Error too if memory
/// for zlib is missing.
std::string packedModelOf(std::span<const Subject> subjects, const Making& making);

/// A model as text: JSON without spaces. Text that is not UTF-8 is replaced.
std::string textOf(const nlohmann::json& model);

}  // namespace cistern::report
