// Cistern's own format, with all that a recording knows.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "interop/recording/failure_facts.hpp"
#include "interop/recording/recording_builder.hpp"
#include "interop/recording/recording_readers.hpp"
#include "interop/trace/cistern_lines.hpp"
#include "interop/trace/header.hpp"

namespace cistern::recording {
namespace {

class RecordingReader final : private trace::LineSink {
 public:
  RecordingReader(std::string_view content, const std::string& file)
      : cursor_(content, file), builder_(cursor_) {
    // Untouched memory costs nothing, and growing would hold the events twice.
    constexpr std::size_t kShortest = 6;  // "f 0 0", with its end
    const auto lines = std::count(content.begin(), content.end(), '\n');
    builder_.expectEvents(std::min(static_cast<std::size_t>(lines), content.size() / kShortest) +
                          1);
  }

  Recording read() {
    trace::readLines(cursor_, *this);
    return builder_.finish();
  }

 private:
  void allocation(std::uint64_t bytes, std::uint64_t stream) override {
    builder_.allocate(bytes, stream);
  }
  void free(std::uint64_t allocation) override { builder_.free(allocation); }
  void usesEnd(std::uint64_t allocation) override { builder_.endUses(allocation); }

  void memory(const trace::MemoryLine& line) override {
    constexpr std::array kKinds = {EventKind::kReserve, EventKind::kRelease, EventKind::kMap,
                                   EventKind::kUnmap};
    builder_.memory(kKinds[std::size_t(line.kind)], line.address, line.bytes, line.stream,
                    line.pool);
  }
  void memoryInHost() override { builder_.setLocation(Location::kHost); }
  void memoryStaysMapped() override { builder_.setStaysMapped(); }

  void failed(std::uint64_t bytes, std::uint64_t stream) override {
    Failure failure;
    failure.requested = bytes;
    builder_.fail(stream, {}, std::move(failure));
  }

  void mark(std::string text) override { builder_.mark(std::move(text)); }
  void elapsed(std::uint64_t delta_us) override { builder_.setDelta(delta_us); }

  void details(const trace::LineDetails& details) override {
    const Recording& there = builder_.soFar();
    requireKnown(details.stack, there.stacks.size(), "stack");
    requireKnown(details.label, there.labels.size(), "label");
    requireKnown(details.pool, there.pools.size(), "pool");
    builder_.setWhere({details.address, static_cast<std::uint32_t>(details.stack),
                       static_cast<std::uint32_t>(details.label),
                       static_cast<std::uint32_t>(details.pool)});
  }

  void failureFacts(std::string_view text) override {
    builder_.setFailure(parseFailure(text, builder_.soFar().events.back().value, cursor_));
  }

  void frame(std::string function, std::string file, std::uint64_t line) override {
    builder_.addFrame({std::move(function), std::move(file), static_cast<std::uint32_t>(line)});
  }
  // Frames count from 1 in the file.
  void stack(std::uint64_t parent, std::uint64_t frame) override {
    if (frame == 0) cursor_.failExpected("the number of a frame, which counts from 1");
    builder_.addStack(parent, frame - 1);
  }
  void label(std::uint64_t parent, std::string name) override {
    builder_.addLabel(parent, std::move(name));
  }
  void pool(std::uint64_t uuid, std::uint64_t uid) override { builder_.addPool({uuid, uid}); }

  void comment(std::string_view comment) override {
    const auto header =
        trace::headerInComment(comment, [&](const std::string& what) { cursor_.fail(what); });
    if (header) take(*header);
    const bool is_ours = header && (header->recording || trace::headerComment(*header) == comment);
    if (!is_ours) builder_.note(std::string(comment));
  }

  // The first name counts. A recorder may learn the rest later, such as the names of streams.
  void take(const trace::Header& header) {
    if (header.name && !named_) builder_.rename(*header.name);
    named_ = named_ || header.name;
    if (header.stream_uses != trace::StreamUses::kNotSaid) {
      builder_.setStreamUses(header.stream_uses);
    }
    if (!header.recording) return;
    if (!header.device.empty()) builder_.setDevice(header.device);
    if (header.first_recorded > 0) builder_.setFirstRecorded(header.first_recorded);
    if (header.dump) builder_.setSource(Source::kDump);
    for (const auto& [stream, name] : header.stream_names) builder_.nameStream(stream, name);
  }

  void requireKnown(std::uint64_t number, std::size_t end, std::string_view what) const {
    if (number < end) return;
    cursor_.fail(fmt::format("expected the number of a {} above, at most {}, found {}", what,
                             end - 1, number));
  }

  trace::TextCursor cursor_;
  RecordingBuilder builder_;
  bool named_ = false;
};

}  // namespace

Recording readCisternRecording(std::string_view content, const std::string& file) {
  return RecordingReader(content, file).read();
}

}  // namespace cistern::recording
