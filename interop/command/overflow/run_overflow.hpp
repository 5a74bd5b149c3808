// Runs `cistern replay --overflow`: every program on devices that have less than it needs. Read
// next: measure_overflow.hpp (one of them), bus_bound.hpp, overflow_printer.hpp.
#pragma once

#include "interop/command/console.hpp"
#include "interop/command/replay/replay_settings.hpp"

namespace cistern::command {

/// kDone when every program was served under every rule, else kNotDone. Before anything is printed
/// it throws UsageError for another device than the simulated one, for a program that needs too
/// little memory, or for a terminal that cannot be written. It then also throws TraceError for a
/// bad file, and Error if the options leave no host pages.
ExitStatus runOverflow(ReplaySettings settings, Console& console);

}  // namespace cistern::command
