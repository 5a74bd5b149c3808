// Reads recordings from files of every format that Cistern knows (docs/traces.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interop/recording/recording_model.hpp"

namespace cistern::recording {

/// The recordings of a file: one, but for a PyTorch memory snapshot, which has one for each GPU.
/// The format is told by content, plain or gzip: a trace or recording of Cistern's, an RMM log, a
/// PyTorch memory snapshot, a snapshot of Cistern's. "-" is the standard input. `gpu` chooses one
/// of a PyTorch snapshot's. If the file has several, each name ends in its GPU: "run [cuda:1]".
/// Throws trace::TraceError naming the place and what was expected there. Throws it also for a file
/// without an event, and for a `gpu` that the file has not or that its format has not. A folder has
/// the recordings of the GPUs of one run (gpu_folder.hpp).
std::vector<Recording> readRecordings(const std::filesystem::path& path,
                                      const trace::ReadLimits& limits = {},
                                      std::optional<std::uint32_t> gpu = std::nullopt);

/// The same for text already in memory and not compressed; `file` is what errors call it. A
/// recording has a name only if the text has.
std::vector<Recording> parseRecordings(std::string_view content, const std::string& file,
                                       std::optional<std::uint32_t> gpu = std::nullopt);

}  // namespace cistern::recording
