// Cistern's own format as a trace. The lines that only a recording has are passed over, but for
// the time that they take.
#include "interop/trace/builder.hpp"
#include "interop/trace/cistern_lines.hpp"
#include "interop/trace/header.hpp"
#include "interop/trace/readers.hpp"
#include "interop/trace/text_cursor.hpp"

namespace cistern::trace {
namespace {

class CisternReader final : private LineSink {
 public:
  CisternReader(std::string_view content, const std::string& file)
      : cursor_(content, file), builder_(cursor_) {}

  Trace read() {
    readLines(cursor_, *this);
    return builder_.finish();
  }

 private:
  void allocation(std::uint64_t bytes, std::uint64_t stream) override {
    builder_.allocate(bytes, stream);
    kept_ = true;
  }
  void free(std::uint64_t allocation) override {
    builder_.free(allocation);
    kept_ = true;
  }
  void usesEnd(std::uint64_t allocation) override {
    builder_.endUses(allocation);
    kept_ = true;
  }
  void memory(const MemoryLine&) override { kept_ = false; }
  void memoryInHost() override {}
  void memoryStaysMapped() override {}
  void failed(std::uint64_t, std::uint64_t) override { kept_ = false; }
  void mark(std::string) override { kept_ = false; }

  // The time of an event that is passed over belongs to the next one.
  void elapsed(std::uint64_t delta_us) override {
    if (delta_us > kLongestUs - passed_us_) builder_.setDelta(delta_us);  // which refuses it
    passed_us_ += delta_us;
    if (!kept_) return;
    builder_.setDelta(passed_us_);
    passed_us_ = 0;
  }

  void details(const LineDetails&) override {}
  void failureFacts(std::string_view) override {}
  void frame(std::string, std::string, std::uint64_t) override {}
  void stack(std::uint64_t, std::uint64_t) override {}
  void label(std::uint64_t, std::string) override {}
  void pool(std::uint64_t, std::uint64_t) override {}

  void comment(std::string_view comment) override {
    const auto header =
        headerInComment(comment, [&](const std::string& what) { cursor_.fail(what); });
    const bool is_ours = header && (header->recording ||
                                    (!named_ && header->name && headerComment(*header) == comment));
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
  bool kept_ = false;            // the last event went to the builder
  std::uint64_t passed_us_ = 0;  // of events that did not, since the last that did; <= kLongestUs
};

}  // namespace

Trace readCistern(std::string_view content, const std::string& file) {
  return CisternReader(content, file).read();
}

}  // namespace cistern::trace
