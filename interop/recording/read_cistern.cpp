// Cistern's own format, a line for each event or definition; docs/traces.md defines the lines.
#include <algorithm>
#include <array>
#include <utility>

#include "allocator/base/trace_lines.hpp"
#include "interop/recording/failure_facts.hpp"
#include "interop/recording/header.hpp"
#include "interop/recording/recording_builder.hpp"
#include "interop/recording/recording_readers.hpp"
#include "interop/trace/text_cursor.hpp"

namespace cistern::recording {
namespace {

using trace::kMaxBytes;
using trace::kMaxStreams;

constexpr std::uint64_t kAnyNumber = ~std::uint64_t{0};
constexpr std::string_view kTime = "a time in microseconds";

class LineReader {
 public:
  LineReader(std::string_view content, const std::string& file, trace::Detail detail)
      : cursor_(content, file),
        builder_(cursor_, detail),
        keeps_all_(detail == trace::Detail::kAll) {
    // Untouched memory costs nothing, and growing would hold the events twice.
    constexpr std::size_t kShortest = 6;  // "f 0 0", with its end
    const auto lines = std::count(content.begin(), content.end(), '\n');
    builder_.expectEvents(std::min(static_cast<std::size_t>(lines), content.size() / kShortest) +
                          1);
  }

  Recording read() {
    while (cursor_.nextLine()) readLine();
    return builder_.finish();
  }

 private:
  void readLine() {
    const std::string_view line = cursor_.line();
    if (line.empty()) return;
    if (line[0] == '#') return readComment(line.substr(line.starts_with("# ") ? 2 : 1));
    const std::string_view verb = cursor_.field(' ');
    if (verb.size() != 1 || !readVerb(verb[0])) {
      cursor_.failExpected("an event such as 'a' or 'f', or '#'");
    }
    cursor_.expectLineEnd();
  }

  bool readVerb(char verb) {
    switch (verb) {
      case 'a':
        return readAllocation(), true;
      case 'f':
        return builder_.free(allocationNumber()), readDelta(), true;
      case 'e':
        return builder_.endUses(allocationNumber()), readDelta(), true;
      case 'r':
        return readMemory(), true;
      case 'o':
        return readFailed(), true;
      case 't':
        return readMark(), true;
      case 'N':
        return readFrame(), true;
      case 'S':
        return readStack(), true;
      case 'L':
        return readLabel(), true;
      case 'P':
        return readPool(), true;
      default:
        return false;
    }
  }

  // ---- Events ----

  void readAllocation() {
    const std::uint64_t bytes = size();
    builder_.allocate(bytes, stream());
    readDelta();
    if (!cursor_.atLineEnd()) readPlace(address());
  }

  void readMemory() {
    constexpr std::array kKinds = {EventKind::kReserve, EventKind::kRelease, EventKind::kMap,
                                   EventKind::kUnmap};
    const EventKind kind = kKinds[memoryKind()];
    const std::uint64_t begin = address();
    const std::uint64_t bytes = size();
    const std::uint64_t on = stream();
    builder_.memory(kind, begin, bytes, on, number("the number of a pool"));
    readDelta();
    if (cursor_.atLineEnd()) return;
    std::string_view word = cursor_.field(' ');
    if (word == "host") {
      builder_.setLocation(Location::kHost);
      if (cursor_.atLineEnd()) return;
      word = cursor_.field(' ');
    }
    const bool page = kind == EventKind::kMap || kind == EventKind::kUnmap;
    if (word != "stays" || !page) cursor_.failExpected("'host', 'stays', or the end of the line");
    builder_.setStaysMapped();
  }

  std::size_t memoryKind() {
    constexpr std::array<std::string_view, 4> kNames = {"alloc", "free", "map", "unmap"};
    const auto named = std::find(kNames.begin(), kNames.end(), cursor_.field(' '));
    if (named == kNames.end()) cursor_.failExpected("alloc, free, map or unmap");
    return std::size_t(named - kNames.begin());
  }

  void readFailed() {
    Failure failure;
    const std::uint64_t bytes = failure.requested = size();
    const bool kept = builder_.fail(stream(), {}, std::move(failure));
    readDelta();
    readPlace(0);
    if (cursor_.atLineEnd()) return;
    const std::string_view facts = cursor_.rest();
    if (kept) builder_.setFailure(parseFailure(facts, bytes, cursor_));
  }

  void readMark() {
    const std::uint64_t delta = number(kTime);
    builder_.mark(cursor_.jsonString(' '));
    builder_.setDelta(delta);
  }

  // ---- Definitions, which a replay passes over ----

  void readFrame() {
    constexpr std::uint64_t kMostLines = 0xffff'ffff;
    Frame frame;
    frame.function = cursor_.jsonString(' ');
    frame.file = cursor_.jsonString(' ');
    frame.line =
        static_cast<std::uint32_t>(cursor_.number(' ', kMostLines, "the number of a line"));
    if (keeps_all_) builder_.addFrame(std::move(frame));
  }

  void readStack() {
    const std::uint64_t parent = number("the number of a stack");
    const std::uint64_t frame = number("the number of a frame");
    if (!keeps_all_) return;
    if (frame == 0) cursor_.failExpected("the number of a frame, which counts from 1");
    builder_.addStack(parent, frame - 1);
  }

  void readLabel() {
    const std::uint64_t parent = number("the number of a label");
    std::string name = cursor_.jsonString(' ');
    if (keeps_all_) builder_.addLabel(parent, std::move(name));
  }

  void readPool() {
    const std::uint64_t uuid = number("the first number of a pool's name");
    const std::uint64_t uid = number("the second number of a pool's name");
    if (keeps_all_) builder_.addPool({uuid, uid});
  }

  // ---- Comments ----

  void readComment(std::string_view comment) {
    const auto header =
        headerInComment(comment, [&](const std::string& what) { cursor_.fail(what); });
    const bool is_ours = header && (header->recording || (!named_ && isWritten(*header, comment)));
    if (header) take(*header);
    if (!is_ours) builder_.note(std::string(comment));
  }

  // Whether writeTrace writes it so. What says more is a comment for people, too.
  static bool isWritten(const Header& header, std::string_view comment) {
    return header.name && headerComment(*header.name, wordFor(header.stream_uses)) == comment;
  }

  // The first name counts. A recorder may learn the rest later, such as the names of streams.
  void take(const Header& header) {
    if (header.name && !named_) builder_.rename(*header.name);
    named_ = named_ || header.name;
    if (header.stream_uses != StreamUses::kNotSaid) builder_.setStreamUses(header.stream_uses);
    if (!header.recording) return;
    if (!header.device.empty()) builder_.setDevice(header.device);
    if (header.first_recorded > 0) builder_.setFirstRecorded(header.first_recorded);
    if (header.dump) builder_.setSource(Source::kDump);
    for (const auto& [stream, name] : header.stream_names) builder_.nameStream(stream, name);
  }

  // ---- Fields ----

  std::uint64_t number(std::string_view what) { return cursor_.number(' ', kAnyNumber, what); }
  std::uint64_t size() { return cursor_.number(' ', kMaxBytes, "a size in bytes, at most 2^60"); }
  std::uint64_t stream() {
    return cursor_.number(' ', kMaxStreams, "a stream number, at most 1000000");
  }
  std::uint64_t address() { return cursor_.hexadecimal(' ', "an address in hexadecimal"); }
  std::uint64_t allocationNumber() { return number("the number of an allocation"); }
  void readDelta() { builder_.setDelta(number(kTime)); }

  void readPlace(std::uint64_t at) {
    const std::uint64_t stack = number("the number of a stack");
    const std::uint64_t label = number("the number of a label");
    builder_.setPlace(at, stack, label, number("the number of a pool"));
  }

  trace::TextCursor cursor_;
  RecordingBuilder builder_;
  const bool keeps_all_;
  bool named_ = false;
};

}  // namespace

Recording readCistern(std::string_view content, const std::string& file, trace::Detail detail) {
  return LineReader(content, file, detail).read();
}

}  // namespace cistern::recording
