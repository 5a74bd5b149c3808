// The settings of `cistern run`, and the program that it starts.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace cistern::command {

struct LaunchSettings {
  std::vector<std::string> command;  ///< not empty
  std::string conf;                  ///< for CISTERN_CONF; empty: unchanged
  std::string overflow;              ///< a size; empty: as conf says
  std::string trace;                 ///< a file; empty: none
  std::string report;                ///< a file for the page; empty: none
  std::string json;                  ///< a file for the summary; empty: none
  bool quiet = false;                ///< no summary on the standard error
  bool stats = false;                ///< more of it
  bool follow_children = false;
  bool show_arguments = false;  ///< processes are named by their command lines
  bool ipc = false;
  bool strict = false;
  bool sleepable = false;       ///< `cistern sleep` can empty its caches
  bool history = false;         ///< histories of the allocators are recorded
  bool history_stacks = false;  ///< with call stacks
};

// The options of the allocators that a program gets under `cistern run`.

/// What --conf says, or else CISTERN_CONF, and then --overflow; empty if nothing says anything.
/// Throws UsageError, which names the place, for a value that is not allowed, and for more overflow
/// than the host admits.
std::string confOf(const LaunchSettings& settings);

// The program, as a process with Cistern before it.

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
