#include "interop/trace/cistern_lines.hpp"

#include <array>
#include <utility>

#include "interop/trace/builder.hpp"

namespace cistern::trace {
namespace {

constexpr std::uint64_t kAnyNumber = ~std::uint64_t{0};

class LineReader {
 public:
  LineReader(TextCursor& cursor, LineSink& sink) : cursor_(cursor), sink_(sink) {}

  void readLine() {
    const std::string_view line = cursor_.line();
    if (line.empty()) return;
    if (line[0] == '#') return readComment(line.substr(1));
    const std::string_view verb = cursor_.field(' ');
    if (verb.size() != 1 || !readVerb(verb[0])) {
      cursor_.failExpected("an event such as 'a' or 'f', or '#'");
    }
    cursor_.expectLineEnd();
  }

 private:
  bool readVerb(char verb) {
    switch (verb) {
      case 'a':
        return readAllocation(), true;
      case 'f':
        return sink_.free(allocationNumber()), readDelta(), true;
      case 'e':
        return sink_.usesEnd(allocationNumber()), readDelta(), true;
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
    sink_.allocation(bytes, stream());
    readDelta();
    if (cursor_.atLineEnd()) return;
    const std::uint64_t address = cursor_.hexadecimal(' ', "an address in hexadecimal");
    sink_.details(detailsAt(address));
  }

  void readMemory() {
    MemoryLine line;
    line.kind = memoryKind();
    line.address = cursor_.hexadecimal(' ', "an address in hexadecimal");
    line.bytes = size();
    line.stream = stream();
    line.pool = number("the number of a pool");
    sink_.memory(line);
    readDelta();
    if (cursor_.atLineEnd()) return;
    std::string_view word = cursor_.field(' ');
    if (word == "host") {
      sink_.memoryInHost();
      if (cursor_.atLineEnd()) return;
      word = cursor_.field(' ');
    }
    const bool page = line.kind == MemoryLine::Kind::kMap || line.kind == MemoryLine::Kind::kUnmap;
    if (word != "stays" || !page) cursor_.failExpected("'host', 'stays', or the end of the line");
    sink_.memoryStaysMapped();
  }

  MemoryLine::Kind memoryKind() {
    constexpr std::array<std::string_view, 4> kNames = {"alloc", "free", "map", "unmap"};
    const std::string_view name = cursor_.field(' ');
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      if (kNames[i] == name) return static_cast<MemoryLine::Kind>(i);
    }
    cursor_.failExpected("alloc, free, map or unmap");
  }

  void readFailed() {
    const std::uint64_t bytes = size();
    sink_.failed(bytes, stream());
    readDelta();
    sink_.details(detailsAt(0));
    if (!cursor_.atLineEnd()) sink_.failureFacts(cursor_.rest());
  }

  void readMark() {
    const std::uint64_t delta = cursor_.number(' ', kAnyNumber, kTime);
    sink_.mark(cursor_.jsonString(' '));
    sink_.elapsed(delta);
  }

  // ---- Definitions ----

  void readFrame() {
    std::string function = cursor_.jsonString(' ');
    std::string file = cursor_.jsonString(' ');
    constexpr std::uint64_t kMostLines = 0xffff'ffff;
    const std::uint64_t line = cursor_.number(' ', kMostLines, "the number of a line");
    sink_.frame(std::move(function), std::move(file), line);
  }

  void readStack() {
    const std::uint64_t parent = number("the number of a stack");
    sink_.stack(parent, number("the number of a frame"));
  }

  void readLabel() {
    const std::uint64_t parent = number("the number of a label");
    sink_.label(parent, cursor_.jsonString(' '));
  }

  void readPool() {
    const std::uint64_t uuid = number("the first number of a pool's name");
    sink_.pool(uuid, number("the second number of a pool's name"));
  }

  // ---- Fields ----

  std::uint64_t number(std::string_view what) { return cursor_.number(' ', kAnyNumber, what); }
  std::uint64_t size() { return cursor_.number(' ', kMaxBytes, "a size in bytes, at most 2^60"); }
  std::uint64_t stream() {
    return cursor_.number(' ', kMaxStreams, "a stream number, at most 1000000");
  }
  std::uint64_t allocationNumber() { return number("the number of an allocation"); }
  void readDelta() { sink_.elapsed(number(kTime)); }

  LineDetails detailsAt(std::uint64_t address) {
    LineDetails read{address, 0, 0, 0};
    read.stack = number("the number of a stack");
    read.label = number("the number of a label");
    read.pool = number("the number of a pool");
    return read;
  }

  void readComment(std::string_view comment) {
    if (!comment.empty() && comment[0] == ' ') comment.remove_prefix(1);
    sink_.comment(comment);
  }

  static constexpr std::string_view kTime = "a time in microseconds";

  TextCursor& cursor_;
  LineSink& sink_;
};

}  // namespace

void readLines(TextCursor& cursor, LineSink& sink) {
  LineReader reader(cursor, sink);
  while (cursor.nextLine()) reader.readLine();
}

}  // namespace cistern::trace
