// Measures one program on smaller devices than it needs, under every rule.
#pragma once

#include <array>

#include "interop/command/overflow/overflow_figures.hpp"
#include "interop/command/replay/progress_bar.hpp"
#include "interop/command/replay/replay_settings.hpp"
#include "interop/command/replay/script.hpp"

namespace cistern::command {

/// The sizes of the device, in % of the program's need.
inline constexpr std::array<unsigned, 3> kShares = {97, 90, 80};

/// Throws UsageError for a program that needs so little memory that the largest share of it, in
/// whole pages, is all of it.
OverflowProgram overflowProgram(const Script& script);

/// Replays the script on a simulated device that has `share` % of the need, in whole pages, under
/// each rule, and takes the bound for a device of that size. Throws Error if the options of
/// `settings` leave no host pages. Pre: settings.device is "sim".
OverflowCase measureOverflow(const Script& script, const OverflowProgram& program, unsigned share,
                             const ReplaySettings& settings, const OnProgress& on_progress);

}  // namespace cistern::command
