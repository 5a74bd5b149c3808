// What the tests of calls share, which are all that a replay reads: samples, the calls as rows, and
// the message of an error.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "interop/recording/read_recording.hpp"
#include "interop/trace/trace_error.hpp"
#include "interop/trace/trace_file.hpp"
#include "tests/support/temporary_file.hpp"

namespace cistern::recording::calls {

using test::TemporaryFile;
using trace::TraceError;

/// A call as its line in a trace has it.
struct Call {
  std::uint64_t value = 0;
  std::uint64_t delta_us = 0;
  std::uint32_t stream = 0;
  EventKind kind = EventKind::kAllocate;
  friend bool operator==(const Call&, const Call&) = default;
};

struct Calls {
  std::string name;
  std::vector<std::string> notes;
  std::vector<Call> events;
  std::uint64_t allocations = 0;
  std::vector<std::uint64_t> stream_names;
  std::size_t streams = 0;
  std::uint64_t peak_requested_bytes = 0;
  std::uint64_t duration_us = 0;
  StreamUses stream_uses = StreamUses::kNotSaid;

  /// Two recordings of one program are equal, whatever their files call its streams.
  friend bool operator==(const Calls& a, const Calls& b) {
    const auto facts = [](const Calls& c) {
      return std::tie(c.name, c.notes, c.events, c.allocations, c.streams, c.peak_requested_bytes,
                      c.duration_us);
    };
    return facts(a) == facts(b);
  }
};

inline Calls callsOf(const Recording& recording) {
  Calls calls;
  calls.name = recording.name;
  calls.notes = recording.notes;
  calls.allocations = recording.allocations;
  calls.stream_names = recording.streams;
  calls.streams = recording.streams.size();
  calls.stream_uses = recording.stream_uses;
  calls.peak_requested_bytes = peakRequested(recording);
  for (const Event& event : recording.events) {
    if (!event.isCall()) continue;
    const std::uint64_t now_us = recording.has_times ? event.time_us : 0;
    calls.events.push_back({event.value, now_us - calls.duration_us, event.stream, event.kind});
    calls.duration_us = now_us;
  }
  return calls;
}

inline std::filesystem::path samplePath(const std::string& name) {
  return std::filesystem::path(CISTERN_SOURCE_DIR) / "tests/trace/samples" / name;
}

inline FileContents parseCalls(std::string_view content,
                               std::optional<std::uint32_t> gpu = std::nullopt) {
  return parseFile(content, "t", trace::Detail::kCalls, gpu);
}

/// What parsing `content` as a file called "t" complains of; empty if it does not.
inline std::string complaint(std::string_view content) {
  try {
    (void)parseCalls(content);
  } catch (const TraceError& error) {
    return error.what();
  }
  return "";
}

/// The same for reading a file, without the path that starts the message.
inline std::string fileComplaint(const std::filesystem::path& path) {
  try {
    (void)readCalls(path);
  } catch (const TraceError& error) {
    return std::string(error.what()).substr(path.string().size());
  }
  return "";
}

/// Parses and audits.
inline Recording parsedRecording(std::string_view content) {
  Recording recording = std::move(parseCalls(content).recordings.at(0));
  audit(recording);
  return recording;
}
inline Calls parsed(std::string_view content) { return callsOf(parsedRecording(content)); }

inline Calls readOne(const std::filesystem::path& path, const trace::ReadLimits& limits = {}) {
  return callsOf(readCalls(path, limits).recordings.at(0));
}

inline Call allocation(std::uint64_t bytes, std::uint32_t stream, std::uint64_t delta_us) {
  return {bytes, delta_us, stream, EventKind::kAllocate};
}
inline Call release(std::uint64_t allocation, std::uint32_t stream, std::uint64_t delta_us) {
  return {allocation, delta_us, stream, EventKind::kFree};
}
inline Call usesEnd(std::uint64_t allocation, std::uint32_t stream, std::uint64_t delta_us) {
  return {allocation, delta_us, stream, EventKind::kUsesEnd};
}

}  // namespace cistern::recording::calls
