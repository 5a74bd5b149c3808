// The recordings of one run, one for each GPU: a folder of files 0.trace, 1.trace, and so on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "interop/recording/recording_model.hpp"
#include "interop/trace/read_limits.hpp"

namespace cistern::recording {

/// In the order of the GPUs, whose numbers the names end in if there are several: "train [cuda:1]".
/// `gpu` chooses one. Throws trace::TraceError for a folder without such files or without that GPU,
/// and what readRecordings throws.
std::vector<Recording> readGpuFolder(const std::filesystem::path& folder,
                                     const trace::ReadLimits& limits,
                                     std::optional<std::uint32_t> gpu);

}  // namespace cistern::recording
