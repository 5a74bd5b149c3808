// Bytes by call stack, for speedscope's flame graph.
#pragma once

#include <filesystem>
#include <vector>

#include "interop/recording/recording_model.hpp"

namespace cistern::recording {

/// Writes speedscope's JSON over `path`, as gzip if that ends in ".gz": for each recording a
/// profile of its peak and one of its end, weighted by bytes asked for. The labels of a block stand
/// above its stack. Throws trace::TraceError if the file cannot be written. Pre: the invariants of
/// Recording hold.
void writeSpeedscope(const std::vector<Recording>& recordings, const std::filesystem::path& path);

}  // namespace cistern::recording
