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

using trace::Detail;
using trace::Format;
using trace::TraceError;

Recording readText(Format format, std::string_view content, const std::string& file,
                   Detail detail) {
  if (format == Format::kRmm) return readRmm(content, file, detail);
  if (format == Format::kCistern) return readCistern(content, file, detail);
  if (detail == Detail::kAll) return readSnapshot(content, file);
  throw TraceError(file,
                   "is a snapshot of Cistern, which has no history; `cistern report` draws it");
}

FileContents contentsOf(Format format, std::string_view content, const std::string& file,
                        Detail detail) {
  FileContents read;
  read.recordings.push_back(readText(format, content, file, detail));
  if (read.recordings[0].events.empty()) trace::failEmpty(format, file);
  return read;
}

// A PyTorch snapshot is read piece by piece, and is never whole in memory.
FileContents readFile(const std::filesystem::path& path, const trace::ReadLimits& limits,
                      Detail detail, std::optional<std::uint32_t> gpu) {
  const std::string file = trace::nameInErrors(path);
  trace::TraceFile open(path, limits);
  const bool is_pytorch = open.format() == Format::kPytorch;
  if (gpu && !is_pytorch) trace::failNoGpu(open.format(), file);
  FileContents read = is_pytorch ? readPytorch(open, file, detail, gpu)
                                 : contentsOf(open.format(), open.rest(), file, detail);
  const std::string name = path == trace::kStandardInput ? "stdin" : trace::stemOf(path);
  for (Recording& recording : read.recordings) {
    recording.file = file;
    if (recording.name.empty()) recording.name = name;
    if (read.of_several) recording.name += fmt::format(" [{}]", recording.device);
  }
  return read;
}

}  // namespace

FileContents parseFile(std::string_view content, const std::string& file, Detail detail,
                       std::optional<std::uint32_t> gpu) {
  if (content.empty()) throw TraceError(file, fmt::format("is empty; {}", trace::kHowToRecord));
  if (content.size() > trace::kMaxFileBytes) {
    throw TraceError(file, "is longer than any trace taken");
  }
  const Format format = trace::formatOf(content, file);
  if (format == Format::kPytorch) {
    trace::TextSource source(content);
    return readPytorch(source, file, detail, gpu);
  }
  if (gpu) trace::failNoGpu(format, file);
  return contentsOf(format, content, file, detail);
}

std::vector<Recording> readRecordings(const std::filesystem::path& path,
                                      const trace::ReadLimits& limits,
                                      std::optional<std::uint32_t> gpu) {
  if (std::filesystem::is_directory(path)) return readGpuFolder(path, limits, gpu);
  return readFile(path, limits, Detail::kAll, gpu).recordings;
}

FileContents readCalls(const std::filesystem::path& path, const trace::ReadLimits& limits,
                       std::optional<std::uint32_t> gpu) {
  return readFile(path, limits, Detail::kCalls, gpu);
}

}  // namespace cistern::recording
