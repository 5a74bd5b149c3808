// The page of `cistern run --report`: what the histories of the run tell.
#pragma once

#include <filesystem>

#include "interop/command/console.hpp"
#include "interop/command/launch/launch_settings.hpp"

namespace cistern::command {

/// Throws, before the program starts, if the page could not be made or written. Pre:
/// settings.report names a file.
void requireHistoryReport(const LaunchSettings& settings);

/// Writes the page, and a line that names it. It has a recording for each allocator of the run that
/// served a request. Throws Error if there is none, or if the page cannot be made or written.
void writeHistoryReport(const LaunchSettings& settings, const std::filesystem::path& folder,
                        Console& console);

}  // namespace cistern::command
