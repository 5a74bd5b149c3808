#include "interop/recording/gpu_folder.hpp"

#include <charconv>
#include <map>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "interop/recording/read_recording.hpp"
#include "interop/trace/trace_error.hpp"
#include "interop/trace/trace_file.hpp"

namespace cistern::recording {
namespace {

namespace fs = std::filesystem;

/// The N of a file N.trace.
std::optional<std::uint32_t> gpuOf(const fs::path& file) {
  const std::string stem = file.stem().string();
  std::uint32_t gpu = 0;
  const auto [end, error] = std::from_chars(stem.data(), stem.data() + stem.size(), gpu);
  const bool whole = error == std::errc{} && end == stem.data() + stem.size();
  return whole && file.extension() == ".trace" ? std::optional(gpu) : std::nullopt;
}

std::map<std::uint32_t, fs::path> filesOf(const fs::path& folder) {
  std::map<std::uint32_t, fs::path> files;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed); !failed && at != fs::directory_iterator{};
       at.increment(failed)) {
    if (const auto gpu = gpuOf(at->path())) files.emplace(*gpu, at->path());
  }
  if (failed) throw trace::TraceError(trace::nameInErrors(folder), failed.message());
  return files;
}

}  // namespace

std::vector<Recording> readGpuFolder(const fs::path& folder, const trace::ReadLimits& limits,
                                     std::optional<std::uint32_t> gpu) {
  const std::map<std::uint32_t, fs::path> files = filesOf(folder);
  const std::string name = trace::nameInErrors(folder);
  if (files.empty())
    throw trace::TraceError(name, "is a folder without recordings; expected 0.trace, 1.trace, …");
  if (gpu && files.count(*gpu) == 0)
    throw trace::TraceError(name, fmt::format("is a folder without {}.trace", *gpu));
  std::vector<Recording> read;
  for (const auto& [number, file] : files) {
    if (gpu && *gpu != number) continue;
    for (Recording& recording : readRecordings(file, limits)) {
      recording.file = recording.name;  // the folder is of the moment, as a rule
      if (files.size() > 1) recording.name += fmt::format(" [cuda:{}]", number);
      read.push_back(std::move(recording));
    }
  }
  return read;
}

}  // namespace cistern::recording
