// Runs `cistern replay`: every trace under every policy, each result printed as it comes. Read
// next: measure.hpp (one of them), replayer.hpp (the loop of events), replay_report.hpp.
#pragma once

#include "interop/command/console.hpp"
#include "interop/command/replay/replay_settings.hpp"

namespace cistern::command {

/// kDone when every trace was served under every policy, else kNotDone. Before anything is printed
/// it throws UsageError for settings that do not go with the device, or if the file of --plot
/// cannot be opened. It then also throws TraceError for a bad file, and Error if the device is
/// missing or lacks a feature that a policy needs. After everything is printed it throws Error if
/// the picture cannot be written after all.
ExitStatus runReplay(ReplaySettings settings, Console& console);

}  // namespace cistern::command
