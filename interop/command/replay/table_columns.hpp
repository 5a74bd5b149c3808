// The columns of figures in the table for people.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "interop/command/replay/measurement.hpp"
#include "interop/command/replay/replay_settings.hpp"

namespace cistern::command {

struct Column {
  std::string_view title;
  std::size_t width = 0;  ///< at least; of the title too
  std::string (*text)(const Measurement& row) = nullptr;
  std::string_view meaning;  ///< a line for below the table; may be empty
};

/// Those that have something to say under these settings, from left to right.
std::vector<Column> columnsFor(const ReplaySettings& settings);

}  // namespace cistern::command
