// What `cistern replay` does: every trace under every policy, printed as it comes.
// Read next: measure.hpp (one of them), replayer.hpp (the loop of events), report.hpp.
#pragma once

#include "interop/command/console.hpp"
#include "interop/command/replay/settings.hpp"

namespace cistern::command {

/// kDone when every trace was served under every policy, else kNotDone. Before anything is printed
/// it throws UsageError for settings that do not go with the device, TraceError for a bad file, and
/// Error when there is no device or it lacks what a policy needs.
ExitStatus runReplay(ReplaySettings settings, Console& console);

}  // namespace cistern::command
