// What `cistern replay` does: every trace under every policy, printed as it comes.
// Read next: measure.hpp (one of them), replayer.hpp (the loop of events), report.hpp.
#pragma once

#include "interop/command/console.hpp"
#include "interop/command/replay/settings.hpp"

namespace cistern::command {

/// kDone when every trace was served under every policy, else kNotDone. Before anything is printed
/// it throws UsageError for settings that do not go with the device, or when the file of --plot
/// cannot be opened, TraceError for a bad file, and Error when there is no device or it lacks what
/// a policy needs. When all is printed, Error when the picture cannot be written after all.
ExitStatus runReplay(ReplaySettings settings, Console& console);

}  // namespace cistern::command
