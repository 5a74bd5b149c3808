// Calls the reader of a file's format, and refuses a file that records nothing.
#include "interop/recording/read_recording.hpp"

#include <utility>

#include <fmt/format.h>

#include "interop/recording/recording_readers.hpp"
#include "interop/trace/format.hpp"
#include "interop/trace/trace_error.hpp"
#include "interop/trace/trace_file.hpp"

namespace cistern::recording {
namespace {

using trace::Format;
using trace::TraceError;

Recording readText(Format format, std::string_view content, const std::string& file) {
  switch (format) {
    case Format::kRmm:
      return readRmmRecording(content, file);
    case Format::kSnapshot:
      return readSnapshotRecording(content, file);
    default:
      return readCisternRecording(content, file);
  }
}

}  // namespace

std::vector<Recording> parseRecordings(std::string content, const std::string& file,
                                       std::optional<std::uint32_t> gpu) {
  if (content.empty()) throw TraceError(file, fmt::format("is empty; {}", trace::kHowToRecord));
  if (content.size() > trace::kMaxFileBytes) {
    throw TraceError(file, "is longer than any trace taken");
  }
  const Format format = trace::formatOf(content, file);
  if (format == Format::kPytorch) return readPytorchRecordings(std::move(content), file, gpu);
  if (gpu) trace::failNoGpu(format, file);
  std::vector<Recording> read;
  read.push_back(readText(format, content, file));
  if (read[0].events.empty()) trace::failEmpty(format, file);
  return read;
}

std::vector<Recording> readRecordings(const std::filesystem::path& path,
                                      const trace::ReadLimits& limits,
                                      std::optional<std::uint32_t> gpu) {
  std::vector<Recording> read =
      parseRecordings(trace::loadFile(path, limits), trace::nameInErrors(path), gpu);
  const std::string name = path == trace::kStandardInput ? "stdin" : trace::stemOf(path);
  for (Recording& recording : read) {
    recording.file = trace::nameInErrors(path);
    if (recording.name.empty()) recording.name = name;
    if (read.size() > 1) recording.name += fmt::format(" [{}]", recording.device);
  }
  return read;
}

}  // namespace cistern::recording
