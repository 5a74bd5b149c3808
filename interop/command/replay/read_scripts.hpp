// The recorded programs that a replay is about, made ready.
#pragma once

#include <vector>

#include "interop/command/console.hpp"
#include "interop/command/replay/progress_bar.hpp"
#include "interop/command/replay/replay_settings.hpp"
#include "interop/command/replay/script.hpp"

namespace cistern::command {

/// The scripts of all of the settings' traces. Every file is read before any is replayed, so that a
/// bad one stops everything at once. Prints what a file has and no script. Throws TraceError, and
/// UsageError for several programs where --plot draws one.
std::vector<Script> readScripts(const ReplaySettings& settings, Progress& progress,
                                Console& console);

}  // namespace cistern::command
