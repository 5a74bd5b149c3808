// Cistern's own format, with one event in each line:
//   # comment          a JSON object in it may name the trace
//   a SIZE STREAM DT   allocation number N (N counts these lines from 0)
//   f N DT             the program freed allocation N
//   e N DT             the uses of the freed allocation N by other streams have ended
#include "interop/trace/builder.hpp"
#include "interop/trace/header.hpp"
#include "interop/trace/readers.hpp"
#include "interop/trace/text_cursor.hpp"

namespace cistern::trace {
namespace {

constexpr std::uint64_t kAny = ~std::uint64_t{0};

class CisternReader {
 public:
  CisternReader(std::string_view content, const std::string& file)
      : cursor_(content, file), builder_(cursor_) {}

  Trace read() {
    while (cursor_.nextLine()) readLine();
    return builder_.finish();
  }

 private:
  void readLine() {
    const std::string_view line = cursor_.line();
    if (line.empty()) return;
    if (line[0] == '#') return readComment(line.substr(1));
    const std::string_view verb = cursor_.field(' ');
    if (verb == "a") return readAllocation();
    if (verb == "f") return readFree();
    if (verb == "e") return readEndOfUses();
    cursor_.failExpected("'a', 'f', 'e' or '#'");
  }

  void readAllocation() {
    const std::uint64_t bytes = cursor_.number(' ', kMaxBytes, "a size in bytes, at most 2^60");
    const std::uint64_t stream =
        cursor_.number(' ', kMaxStreams, "a stream number, at most 1000000");
    builder_.allocate(bytes, stream);
    readDelta();
  }

  void readFree() {
    builder_.free(readAllocationNumber());
    readDelta();
  }

  void readEndOfUses() {
    builder_.endUses(readAllocationNumber());
    readDelta();
  }

  std::uint64_t readAllocationNumber() {
    return cursor_.number(' ', kAny, "the number of an allocation");
  }

  void readDelta() {
    builder_.setDelta(cursor_.number(' ', kAny, "a time in microseconds"));
    cursor_.expectLineEnd();
  }

  void readComment(std::string_view comment) {
    if (!comment.empty() && comment[0] == ' ') comment.remove_prefix(1);
    const auto header = headerInComment(comment, [&] {
      cursor_.fail("expected \"stream_uses\" to be \"recorded\" or \"missing\"");
    });
    const bool is_ours = !named_ && header && header->name && headerComment(*header) == comment;
    if (header) take(*header);
    if (!is_ours) builder_.note(std::string(comment));
  }

  // The first name counts.
  void take(const Header& header) {
    if (header.name && !named_) builder_.rename(*header.name);
    named_ = named_ || header.name;
    if (header.stream_uses != StreamUses::kNotSaid) builder_.setStreamUses(header.stream_uses);
  }

  TextCursor cursor_;
  TraceBuilder builder_;
  bool named_ = false;
};

}  // namespace

Trace readCistern(std::string_view content, const std::string& file) {
  return CisternReader(content, file).read();
}

}  // namespace cistern::trace
