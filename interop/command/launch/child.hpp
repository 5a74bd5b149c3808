// The program, as a process with Cistern before it.
#pragma once

#include <filesystem>

#include "interop/command/launch/launch_settings.hpp"

namespace cistern::command {

/// How a process ended.
struct Ending {
  int pid = 0;
  int status = 0;  ///< its exit status; 127: it could not be started
  int signal = 0;  ///< what ended it; 0: it exited
  /// The status that a shell would report.
  int shellStatus() const { return signal != 0 ? 128 + signal : status; }
};

/// libcistern_preload.so: the path in CISTERN_PRELOAD, else beside this program, where it is built
/// or installed. Throws Error naming where it was looked for.
std::filesystem::path preloadLibrary();

/// Runs the command to its end, with the library before it and its records in `folder`. Signals
/// that ask this process to end are passed on. Throws Error when no process can be made.
Ending runChild(const LaunchSettings& settings, const std::filesystem::path& library,
                const std::filesystem::path& folder);

}  // namespace cistern::command
