// Calls the reader of a file's format, and refuses a file that records nothing.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "interop/trace/format.hpp"
#include "interop/trace/readers.hpp"
#include "interop/trace/trace_file.hpp"

namespace cistern::trace {
namespace {

Recordings readText(Format format, std::string_view content, const std::string& file,
                    std::optional<std::uint32_t> gpu) {
  if (gpu) failNoGpu(format, file);
  if (format == Format::kSnapshot) {
    throw TraceError(file,
                     "is a snapshot of Cistern, which has no history; `cistern report` draws it");
  }
  Recordings read;
  read.traces.push_back(format == Format::kRmm ? readRmm(content, file)
                                               : readCistern(content, file));
  if (read.traces[0].events.empty()) failEmpty(format, file);
  return read;
}

Trace theOnly(Recordings read, const std::string& file) {
  if (read.traces.size() == 1) return std::move(read.traces[0]);
  throw TraceError(file, fmt::format("records several GPUs, {}: one has to be chosen",
                                     fmt::join(read.gpus, ", ")));
}

}  // namespace

Recordings parseTraces(std::string_view content, const std::string& file,
                       std::optional<std::uint32_t> gpu) {
  if (content.empty()) throw TraceError(file, fmt::format("is empty; {}", kHowToRecord));
  if (content.size() > kMaxFileBytes) throw TraceError(file, "is longer than any trace taken");
  const Format format = formatOf(content, file);
  if (format == Format::kPytorch) {
    TextSource source(content);
    return readPytorch(source, file, gpu);
  }
  return readText(format, content, file, gpu);
}

Recordings readTraces(const std::filesystem::path& path, const ReadLimits& limits,
                      std::optional<std::uint32_t> gpu) {
  TraceFile file(path, limits);
  Recordings read = file.format() == Format::kPytorch
                        ? readPytorch(file, nameInErrors(path), gpu)
                        : readText(file.format(), file.rest(), nameInErrors(path), gpu);
  const std::string name = path == kStandardInput ? "stdin" : stemOf(path);
  for (std::size_t i = 0; i < read.traces.size(); ++i) {
    Trace& trace = read.traces[i];
    if (trace.name.empty()) trace.name = name;
    if (read.of_several) trace.name += fmt::format(" [{}]", read.gpus[i]);
  }
  return read;
}

Trace parseTrace(std::string_view content, const std::string& file) {
  return theOnly(parseTraces(content, file), file);
}

Trace readTrace(const std::filesystem::path& path, const ReadLimits& limits) {
  return theOnly(readTraces(path, limits), nameInErrors(path));
}

}  // namespace cistern::trace
