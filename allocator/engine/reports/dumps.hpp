// A history is written to a file at once: by the program's verb, or when a request has failed.
// Thread-safe.
#pragma once

#include <string>

#include "allocator/engine/engine.hpp"
#include "cistern/report.hpp"

namespace cistern {

/// CachingAllocator::dumpHistory, which says what it throws.
void dumpHistory(Engine& engine, const std::string& path);
/// Notes the failure in the history, if one is recorded. Writes a dump where the option oom_dump
/// says, and sets report.dump. Never throws: a failure of its own is named there.
void noteFailure(Engine& engine, OutOfMemoryReport& report) noexcept;

}  // namespace cistern
