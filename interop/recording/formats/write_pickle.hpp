// A PyTorch memory snapshot, for PyTorch's own viewer.
#pragma once

#include <filesystem>
#include <vector>

#include "interop/recording/recording_model.hpp"

namespace cistern::recording {

/// Writes a pickle of protocol 4 over `path`, in the shape of torch.cuda.memory._snapshot(): the
/// segments and blocks at the end, and each recording's events with their frames, in the place of
/// its GPU. A label is the "user_metadata". Marks stand in "external_annotations". Without
/// has_reserved one segment holds all blocks. Throws trace::TraceError if the file cannot be
/// written, and if a recording knows no addresses. Pre: the invariants of Recording hold.
void writePickle(const std::vector<Recording>& recordings, const std::filesystem::path& path);

}  // namespace cistern::recording
