// HIP's functions that are known to submit no work that touches memory, up to HIP 7.2. A function
// that is not known by name counts as one that may submit work to any stream.
#pragma once

#include <string_view>

namespace cistern::preload::hip {

/// Whether the function of that name, in whichever spelling, submits nothing. Waiting for an event
/// and recording one are harmless: neither touches memory, and work submitted behind them is
/// ordered itself.
bool isHarmless(std::string_view name);

}  // namespace cistern::preload::hip
