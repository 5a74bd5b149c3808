#include <string>
#include <utility>

#include "interop/recording/recording_builder.hpp"
#include "interop/recording/recording_readers.hpp"
#include "interop/trace/rmm_lines.hpp"

namespace cistern::recording {
namespace {

class RecordingOfRmm final : public trace::RmmSink {
 public:
  explicit RecordingOfRmm(const trace::TextCursor& cursor) : builder_(cursor) {}

  void allocate(std::uint64_t pointer, std::uint64_t bytes, std::uint64_t stream) override {
    Whereabouts where;
    where.address = pointer;
    builder_.allocate(bytes, stream, where);
  }
  void free(std::uint64_t allocation) override { builder_.free(allocation); }

  bool failed(std::uint64_t bytes, std::uint64_t stream) override {
    Failure failure;
    failure.requested = bytes;
    builder_.fail(stream, {}, std::move(failure));
    return true;
  }

  void elapsed(std::uint64_t delta_us) override { builder_.setDelta(delta_us); }
  void note(std::string text) override { builder_.note(std::move(text)); }

  Recording finish() {
    builder_.setSource(Source::kRmm);
    builder_.setStreamUses(trace::StreamUses::kRecorded);  // RMM's frees are in stream order
    return builder_.finish();
  }

 private:
  RecordingBuilder builder_;
};

}  // namespace

Recording readRmmRecording(std::string_view content, const std::string& file) {
  trace::TextCursor cursor(content, file);
  RecordingOfRmm sink(cursor);
  trace::readRmmLines(cursor, sink);
  return sink.finish();
}

}  // namespace cistern::recording
