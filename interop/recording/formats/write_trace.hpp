// Writes a recording's calls in Cistern's own format, for readCalls to read back.
#pragma once

#include <filesystem>

#include "interop/recording/recording_model.hpp"

namespace cistern::recording {

/// Writes the calls over `path`, as gzip if that ends in ".gz". What readCalls makes of the file
/// equals them, if the name and the notes hold no line breaks (they become spaces). Pre: the
/// invariants of Recording hold, and there is a call. Throws TraceError if the file cannot be
/// written; then, and if the program is killed meanwhile, the previous file is still there.
/// ReplacedFile has the exceptions: what is no file of data, and what may not be replaced, is
/// written in place.
void writeTrace(const Recording& recording, const std::filesystem::path& path);

}  // namespace cistern::recording
