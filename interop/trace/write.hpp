// Writes a trace in Cistern's own format, for readTrace to read back.
#pragma once

#include <filesystem>

#include "interop/trace/trace.hpp"

namespace cistern::trace {

/// Writes `trace` over `path`, as gzip if that ends in ".gz". What readTrace makes of the file
/// equals `trace`, if its name and notes hold no line breaks (they become spaces). Pre: the
/// invariants of Trace hold, and there is an event. Throws TraceError if the file cannot be
/// written; then, and if the program is killed meanwhile, the previous file is still there.
/// ReplacedFile has the exceptions: what is no file of data, and what may not be replaced, is
/// written in place.
void writeTrace(const Trace& trace, const std::filesystem::path& path);

}  // namespace cistern::trace
