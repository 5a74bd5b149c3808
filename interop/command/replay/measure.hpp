// Replays one script under one policy and returns the cost; with --fit, also the least memory that
// would have been enough.
#pragma once

#include <string>
#include <string_view>

#include "interop/command/replay/measurement.hpp"
#include "interop/command/replay/policy.hpp"
#include "interop/command/replay/progress_bar.hpp"
#include "interop/command/replay/replay_settings.hpp"
#include "interop/command/replay/script.hpp"

namespace cistern::command {

/// Why there is no row for a policy that takes no capacity.
std::string cannotBeHeld(std::string_view policy);

/// Pre: settings.device is resolved. Throws DeviceFailure when there is no device to replay on.
/// A policy that cannot be held to settings.capacity is not replayed, and is not ok.
/// `on_progress` hears now and then which fraction is done.
Measurement measure(const Script& script, const PolicyKind& kind, const ReplaySettings& settings,
                    const OnProgress& on_progress);

}  // namespace cistern::command
