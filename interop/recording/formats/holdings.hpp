// The holders of memory at a moment of a recording.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "interop/recording/recording_model.hpp"

namespace cistern::recording {

/// The living blocks of one call stack under one label.
struct Holding {
  std::uint32_t stack = 0;
  std::uint32_t label = 0;
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
};

/// The moment of the most bytes asked for, as a number of events before it. Of equal ones the
/// first.
std::size_t peakOf(const Recording& recording);

/// The living blocks when `events` events have happened, largest first. Pre: events <=
/// recording.events.size().
std::vector<Holding> holdingsAt(const Recording& recording, std::size_t events);

/// Which allocations live when `events` events have happened, by their number.
std::vector<bool> livingAt(const Recording& recording, std::size_t events);

/// "forward / layer 3", from the outermost label; empty for label 0.
std::string labelPath(const Recording& recording, std::uint32_t label);

/// "inner (file.py:12)" a line for each frame, innermost first; empty for stack 0.
std::string stackText(const Recording& recording, std::uint32_t stack);

/// "inner (file.py:12)".
std::string frameText(const Frame& frame);

}  // namespace cistern::recording
