// Gives the blocks of a recording the addresses, and the recording the memory, that a replay found.
#pragma once

#include "interop/command/report/report_replay.hpp"

namespace cistern::command {

/// Afterwards the recording has addresses and reserved memory. The changes to the memory are events
/// like others, so numbers of events after them are higher than before. Pre: the placing served all
/// of the recording.
void takePlaces(recording::Recording& recording, const ReportReplay::Placing& placing);

}  // namespace cistern::command
