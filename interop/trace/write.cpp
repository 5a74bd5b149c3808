#include "interop/trace/write.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "interop/trace/header.hpp"
#include "interop/trace/output_file.hpp"

namespace cistern::trace {
namespace {

constexpr std::size_t kWriteChunk = kMiB;

void appendComment(fmt::memory_buffer& text, std::string comment) {
  const auto breaks = [](char c) { return c == '\n' || c == '\r'; };
  std::replace_if(comment.begin(), comment.end(), breaks, ' ');
  fmt::format_to(fmt::appender(text), "# {}\n", comment);
}

void appendEvent(fmt::memory_buffer& text, const TraceEvent& event) {
  if (event.isAllocation()) {
    fmt::format_to(fmt::appender(text), "a {} {} {}\n", event.value, event.stream, event.delta_us);
  } else {
    const char verb = event.kind == EventKind::kFree ? 'f' : 'e';
    fmt::format_to(fmt::appender(text), "{} {} {}\n", verb, event.value, event.delta_us);
  }
}

void flush(OutputFile& file, fmt::memory_buffer& text) {
  file.write({text.data(), text.size()});
  text.clear();
}

}  // namespace

void writeTrace(const Trace& trace, const std::filesystem::path& path) {
  OutputFile file(path);
  fmt::memory_buffer text;
  Header header;
  header.name = trace.name;
  header.stream_uses = trace.stream_uses;
  appendComment(text, headerComment(header));
  for (const std::string& note : trace.notes) appendComment(text, note);
  for (const TraceEvent& event : trace.events) {
    if (text.size() >= kWriteChunk) flush(file, text);
    appendEvent(text, event);
  }
  flush(file, text);
  file.close();
}

}  // namespace cistern::trace
