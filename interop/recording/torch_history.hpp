// One GPU's history in a PyTorch snapshot as a recording. PyTorch records a free twice:
// free_requested, when the program lets go, and free_completed, when no other stream uses the
// memory any more. The first is the program's free, and so is the second where the first is
// missing. Otherwise the second ends the block's uses. PyTorch writes it right behind the first
// where it waits for no other stream; such a free is in stream order, and needs no end of uses.
#pragma once

#include <string>

#include "interop/recording/recording_model.hpp"
#include "interop/trace/torch_snapshot.hpp"

namespace cistern::recording {

/// The history's entries are freed on the way. `file` is what errors call the snapshot. Throws
/// TraceError at an entry that cannot have happened. Pre: there are fewer than 2^32 entries.
Recording recordingOf(trace::DeviceHistory& history, const trace::SnapshotTables& tables,
                      const std::string& file, trace::Detail detail);

}  // namespace cistern::recording
