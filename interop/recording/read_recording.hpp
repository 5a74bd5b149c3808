// Reads recordings from files of every format that Cistern knows (docs/traces.md). Told apart by
// content, plain or gzip: a trace or recording of Cistern's, an RMM log, a PyTorch memory snapshot,
// a snapshot of Cistern's. "-" is the standard input.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interop/recording/recording_model.hpp"
#include "interop/trace/read_limits.hpp"

namespace cistern::recording {

/// The recorded programs of one file: one, but for a PyTorch memory snapshot of several GPUs. That
/// has one for each GPU.
struct FileContents {
  std::vector<Recording> recordings;  ///< at least one, and each has an event
  bool of_several = false;            ///< the file has several GPUs, though one may be chosen
  std::vector<std::string> left_out;  ///< for people: memory in the file that no recording has
};

/// The recordings of a file with all that their recorder knew. `gpu` chooses one of a PyTorch
/// snapshot's. If the file has several, each name ends in its GPU: "run [cuda:1]". A folder has the
/// recordings of the GPUs of one run (gpu_folder.hpp). Throws trace::TraceError naming the place
/// and what was expected there. Throws it also for a file without an event, and for a `gpu` that
/// the file has not or that its format has not.
std::vector<Recording> readRecordings(const std::filesystem::path& path,
                                      const trace::ReadLimits& limits = {},
                                      std::optional<std::uint32_t> gpu = std::nullopt);

/// The same with Detail::kCalls, which is what a replay needs: of no folder and of no snapshot of
/// Cistern's, which have no calls, and of those GPUs alone that have a history.
FileContents readCalls(const std::filesystem::path& path, const trace::ReadLimits& limits = {},
                       std::optional<std::uint32_t> gpu = std::nullopt);

/// The same for text already in memory and not compressed; `file` is what errors call it. A
/// recording has a name only if the text has.
FileContents parseFile(std::string_view content, const std::string& file, trace::Detail detail,
                       std::optional<std::uint32_t> gpu = std::nullopt);

}  // namespace cistern::recording
