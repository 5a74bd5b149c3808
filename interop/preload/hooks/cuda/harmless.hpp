// Functions of the driver's that are known to submit no work that touches memory.
//
// What is not known by name counts as a function that may submit work to any stream: a driver that
// is newer than this build costs a little time then, and no correctness.
#pragma once

namespace cistern::preload::cuda {

/// Whether the function of that name, in whichever version and spelling, submits nothing. Waiting
/// for an event and recording one are harmless: neither touches memory, and what is submitted
/// behind them is ordered itself.
bool isHarmless(const char* name);

}  // namespace cistern::preload::cuda
