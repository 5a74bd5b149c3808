// Writes a trace in Cistern's own format, for readTrace to read back.
#pragma once

#include <filesystem>

#include "interop/trace/trace.hpp"

namespace cistern::trace {

/// Writes `trace` over `path`, as gzip if that ends in ".gz". What readTrace makes of the file
/// equals `trace`, if its name and notes hold no line breaks (they become spaces). Pre: the
/// invariants of Trace hold. Throws TraceError if the file cannot be written; then, and if the
/// program is killed meanwhile, the previous file is still there.
void writeTrace(const Trace& trace, const std::filesystem::path& path);

}  // namespace cistern::trace
