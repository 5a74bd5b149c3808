// Functions of the driver's that are known to submit no work that touches memory.
//
// A function that is not known by name counts as one that may submit work to any stream. So a
// driver that is newer than this build costs a little time, and no correctness.
#pragma once

namespace cistern::preload::cuda {

/// Whether the function of that name, in whichever version and spelling, submits nothing. Waiting
/// for an event and recording one are harmless: neither touches memory, and work submitted behind
/// them is ordered itself.
bool isHarmless(const char* name);

}  // namespace cistern::preload::cuda
