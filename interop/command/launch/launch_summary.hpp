// The summary of a run, as text for a person and as JSON.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "interop/command/console.hpp"
#include "interop/command/launch/child.hpp"
#include "interop/command/launch/records.hpp"

namespace cistern::command {

/// A few lines for each process that asked for device memory. One more line says how the program
/// ended, if it did not end by itself. With `all`, also the time of each kind of call.
std::string summaryText(const std::vector<Account>& accounts, const Ending& ending, bool all);
/// docs/run.md lists the keys.
std::string summaryJson(const std::vector<Account>& accounts, const Ending& ending);

// The page of `cistern run --report`: what the histories of the run tell.

/// Throws, before the program starts, if the page could not be made or written. Pre:
/// settings.report names a file.
void requireHistoryReport(const LaunchSettings& settings);

/// Writes the page, and a line that names it. It has a recording for each allocator of the run that
/// served a request. Throws Error if there is none, or if the page cannot be made or written.
void writeHistoryReport(const LaunchSettings& settings, const std::filesystem::path& folder,
                        Console& console);

}  // namespace cistern::command
