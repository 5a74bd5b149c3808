#include "interop/recording/formats/write_trace.hpp"

#include <utility>

#include "allocator/base/bytes.hpp"
#include "allocator/base/trace_lines.hpp"
#include "interop/recording/header.hpp"
#include "interop/trace/output_file.hpp"

namespace cistern::recording {
namespace {

void add(TraceLines& lines, const Event& event, std::uint64_t delta_us) {
  if (event.kind == EventKind::kAllocate)
    return lines.allocation(event.value, event.stream, delta_us);
  if (event.kind == EventKind::kFree) return lines.free(event.value, delta_us);
  lines.usesEnd(event.value, delta_us);
}

}  // namespace

// The time of an event that is no call goes to the next line.
void writeTrace(const Recording& recording, const std::filesystem::path& path) {
  constexpr std::size_t kWriteChunk = kMiB;
  trace::OutputFile file(path);
  TraceLines lines;
  lines.comment(headerComment(recording.name, wordFor(recording.stream_uses)));
  for (const std::string& note : recording.notes) lines.comment(note);
  std::uint64_t last_us = 0;
  for (const Event& event : recording.events) {
    if (!event.isCall()) continue;
    if (lines.text().size() >= kWriteChunk) file.write(lines.take());
    const std::uint64_t now_us = recording.has_times ? event.time_us : 0;
    add(lines, event, now_us - std::exchange(last_us, now_us));
  }
  file.write(lines.take());
  file.close();
}

}  // namespace cistern::recording
