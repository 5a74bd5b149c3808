// The options of the allocators that a program gets under `cistern run`.
#pragma once

#include <string>

#include "interop/command/launch/launch_settings.hpp"

namespace cistern::command {

/// What --conf says, or else CISTERN_CONF, and then --overflow; empty if nothing says anything.
/// Throws UsageError, which names the place, for a value that is not allowed, and for more overflow
/// than the host admits.
std::string confOf(const LaunchSettings& settings);

}  // namespace cistern::command
