// A recording as a trace, for replays.
#pragma once

#include "interop/recording/recording_model.hpp"

namespace cistern::recording {

/// The recording's allocations, frees and ends of uses, with its name, notes and times. A recording
/// without times becomes a trace whose events come at once. Pre: the invariants of Recording hold.
trace::Trace traceOf(const Recording& recording);

}  // namespace cistern::recording
