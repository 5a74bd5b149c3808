// The settings of `cistern run`.
#pragma once

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

}  // namespace cistern::command
