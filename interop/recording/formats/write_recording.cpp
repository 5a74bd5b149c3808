#include "interop/recording/formats/write_recording.hpp"

#include <algorithm>
#include <array>
#include <string>

#include <nlohmann/json.hpp>

#include "interop/recording/formats/text_output.hpp"
#include "interop/trace/header.hpp"

namespace cistern::recording {
namespace {

std::string factsOf(const Failure& failure) {
  nlohmann::ordered_json facts{{"requested", failure.requested}};
  const auto add = [&](const char* key, std::uint64_t bytes) {
    if (bytes > 0) facts[key] = bytes;
  };
  add("rounded", failure.rounded);
  add("limit", failure.limit);
  add("device_total", failure.device_total);
  add("device_free", failure.device_free);
  add("reserved", failure.reserved);
  add("allocated", failure.allocated);
  for (const Unused& unused : failure.unused) {
    facts["unused"].push_back(
        {{"why", unused.why}, {"bytes", unused.bytes}, {"largest", unused.largest}});
  }
  if (!failure.advice.empty()) facts["advice"] = failure.advice;
  if (!failure.device_error.empty()) facts["device_error"] = failure.device_error;
  return facts.dump();
}

class RecordingWriter {
 public:
  RecordingWriter(const Recording& recording, const std::filesystem::path& path)
      : recording_(recording), out_(path) {}

  void write() {
    writeHeader();
    for (const std::string& note : recording_.notes) writeComment(note);
    writeTables();
    for (const Event& event : recording_.events) writeEvent(event);
    out_.close();
  }

 private:
  void writeHeader() {
    trace::Header header;
    header.name = recording_.name;
    header.stream_uses = recording_.stream_uses;
    header.recording = true;
    header.dump = recording_.source == Source::kDump;
    header.device = recording_.device;
    header.first_recorded = recording_.first_recorded;
    constexpr std::size_t kMostNames = 1000;  // a header is at most 64 KiB long
    for (std::size_t i = 1; i < std::min(recording_.streams.size(), kMostNames); ++i) {
      if (recording_.streams[i] != i) header.stream_names[i] = recording_.streams[i];
    }
    writeComment(trace::headerComment(header));
  }

  void writeComment(std::string comment) {
    std::replace_if(
        comment.begin(), comment.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
    out_.format("# {}\n", comment);
  }

  void writeTables() {
    for (const Frame& frame : recording_.frames) {
      out_.add("N ");
      out_.json(frame.function);
      out_.add(" ");
      out_.json(frame.file);
      out_.format(" {}\n", frame.line);
    }
    for (std::size_t i = 1; i < recording_.stacks.size(); ++i) {
      out_.format("S {} {}\n", recording_.stacks[i].parent, recording_.stacks[i].frame + 1);
    }
    for (std::size_t i = 1; i < recording_.labels.size(); ++i) {
      out_.format("L {} ", recording_.labels[i].parent);
      out_.json(recording_.labels[i].name);
      out_.add("\n");
    }
    for (std::size_t i = 1; i < recording_.pools.size(); ++i) {
      out_.format("P {} {}\n", recording_.pools[i].uuid, recording_.pools[i].uid);
    }
  }

  void writeEvent(const Event& event) {
    const std::uint64_t delta = recording_.has_times ? event.time_us - last_us_ : 0;
    last_us_ = event.time_us;
    switch (event.kind) {
      case EventKind::kAllocate:
        out_.format("a {} {} {}", event.value, event.stream, delta);
        if (event.address > 0 || event.stack > 0 || event.label > 0 || event.pool > 0) {
          out_.format(" {:x} {} {} {}", event.address, event.stack, event.label, event.pool);
        }
        return out_.add("\n");
      case EventKind::kFree:
        return out_.format("f {} {}\n", event.value, delta);
      case EventKind::kUsesEnd:
        return out_.format("e {} {}\n", event.value, delta);
      case EventKind::kFailed:
        return out_.format("o {} {} {} {} {} {} {}\n", event.value, event.stream, delta,
                           event.stack, event.label, event.pool,
                           factsOf(recording_.failures[event.failure]));
      case EventKind::kMark:
        out_.format("t {} ", delta);
        out_.json(recording_.marks[event.value]);
        return out_.add("\n");
      default:
        return writeMemory(event, delta);
    }
  }

  void writeMemory(const Event& event, std::uint64_t delta) {
    constexpr std::array kNames = {"alloc", "free", "map", "unmap"};
    const auto kind =
        static_cast<std::size_t>(event.kind) - static_cast<std::size_t>(EventKind::kReserve);
    out_.format("r {} {:x} {} {} {} {}{}\n", kNames[kind], event.address, event.value, event.stream,
                event.pool, delta, event.location == Location::kHost ? " host" : "");
  }

  const Recording& recording_;
  TextOutput out_;
  std::uint64_t last_us_ = 0;
};

}  // namespace

void writeRecording(const Recording& recording, const std::filesystem::path& path) {
  RecordingWriter(recording, path).write();
}

}  // namespace cistern::recording
