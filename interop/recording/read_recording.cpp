// Calls the reader of a file's format, and refuses a file that records nothing.
#include "interop/recording/read_recording.hpp"

#include <utility>

#include <fmt/format.h>

#include "interop/recording/gpu_folder.hpp"
#include "interop/recording/recording_readers.hpp"
#include "interop/trace/format.hpp"
#include "interop/trace/trace_error.hpp"
#include "interop/trace/trace_file.hpp"

namespace cistern::recording {
namespace {

using trace::Format;
using trace::TraceError;

std::vector<Recording> readText(Format format, std::string_view content, const std::string& file) {
  std::vector<Recording> read;
  if (format == Format::kRmm) {
    read.push_back(readRmmRecording(content, file));
  } else if (format == Format::kSnapshot) {
    read.push_back(readSnapshotRecording(content, file));
  } else {
    read.push_back(readCisternRecording(content, file));
  }
  if (read[0].events.empty()) trace::failEmpty(format, file);
  return read;
}

}  // namespace

std::vector<Recording> parseRecordings(std::string_view content, const std::string& file,
                                       std::optional<std::uint32_t> gpu) {
  if (content.empty()) throw TraceError(file, fmt::format("is empty; {}", trace::kHowToRecord));
  if (content.size() > trace::kMaxFileBytes) {
    throw TraceError(file, "is longer than any trace taken");
  }
  const Format format = trace::formatOf(content, file);
  if (format == Format::kPytorch) {
    trace::TextSource source(content);
    return readPytorchRecordings(source, file, gpu);
  }
  if (gpu) trace::failNoGpu(format, file);
  return readText(format, content, file);
}

// A PyTorch snapshot is read piece by piece, and is never whole in memory.
std::vector<Recording> readRecordings(const std::filesystem::path& path,
                                      const trace::ReadLimits& limits,
                                      std::optional<std::uint32_t> gpu) {
  if (std::filesystem::is_directory(path)) return readGpuFolder(path, limits, gpu);
  const std::string file = trace::nameInErrors(path);
  trace::TraceFile open(path, limits);
  const bool is_pytorch = open.format() == Format::kPytorch;
  if (gpu && !is_pytorch) trace::failNoGpu(open.format(), file);
  std::vector<Recording> read = is_pytorch ? readPytorchRecordings(open, file, gpu)
                                           : readText(open.format(), open.rest(), file);
  const std::string name = path == trace::kStandardInput ? "stdin" : trace::stemOf(path);
  for (Recording& recording : read) {
    recording.file = file;
    if (recording.name.empty()) recording.name = name;
    if (read.size() > 1) recording.name += fmt::format(" [{}]", recording.device);
  }
  return read;
}

}  // namespace cistern::recording
