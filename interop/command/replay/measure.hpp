// Replays one script under one policy and returns the cost; with --fit, also the least memory that
// would have been enough.
#pragma once

#include "interop/command/replay/measurement.hpp"
#include "interop/command/replay/policy.hpp"
#include "interop/command/replay/progress_bar.hpp"
#include "interop/command/replay/replay_settings.hpp"
#include "interop/command/replay/script.hpp"

namespace cistern::command {

/// Pre: settings.device is resolved. Throws DeviceFailure when there is no device to replay on.
/// `on_progress` hears now and then which fraction is done.
Measurement measure(const Script& script, const PolicyKind& kind, const ReplaySettings& settings,
                    const OnProgress& on_progress);

}  // namespace cistern::command
