// Cistern's own format, with all that a recording knows.
#pragma once

#include <filesystem>

#include "interop/recording/recording_model.hpp"

namespace cistern::recording {

/// Writes `recording` over `path`, as gzip if that ends in ".gz". What readRecordings makes of the
/// file equals it, but for line breaks in its notes, for the stacks of segments, and for a source
/// that is neither a dump nor a trace. Throws trace::TraceError if the file cannot be
/// written. Pre: the invariants of Recording hold, and there is an event.
void writeRecording(const Recording& recording, const std::filesystem::path& path);

}  // namespace cistern::recording
