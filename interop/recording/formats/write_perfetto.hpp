// Memory over time for the Perfetto UI, as JSON trace events.
#pragma once

#include <filesystem>
#include <vector>

#include "interop/recording/recording_model.hpp"

namespace cistern::recording {

/// Writes JSON trace events over `path`, as gzip if that ends in ".gz". Each recording is a
/// process. It has counters of what was asked for and of what was reserved, in all and by pool; an
/// instant event for each failed request and each mark; and a slice for each of the largest 5,000
/// blocks, with its label, stack, address and stream. Counters have at most 20,000 values each: the
/// peak of each stretch of time, at its moment. Throws trace::TraceError if the file cannot be
/// written. Pre: the invariants of Recording hold.
void writePerfetto(const std::vector<Recording>& recordings, const std::filesystem::path& path);

}  // namespace cistern::recording
