#include "interop/recording/recording_builder.hpp"
#include "interop/recording/recording_readers.hpp"
#include "interop/trace/readers.hpp"

namespace cistern::recording {
namespace {

class FileSite final : public trace::ErrorSite {
 public:
  explicit FileSite(const std::string& file) : file_(file) {}
  [[noreturn]] void fail(const std::string& what) const override {
    throw trace::TraceError(file_, what);
  }

 private:
  const std::string& file_;
};

Recording fromTrace(const trace::Trace& trace, const std::string& file, Source source) {
  const FileSite site(file);
  RecordingBuilder builder(site);
  for (const trace::TraceEvent& event : trace.events) {
    if (event.isAllocation()) {
      builder.allocate(event.value, trace.stream_names[std::size_t(event.stream)]);
    } else if (event.kind == trace::EventKind::kFree) {
      builder.free(event.value);
    } else {
      builder.endUses(event.value);
    }
    builder.setDelta(event.delta_us);
  }
  builder.rename(trace.name);
  builder.setSource(source);
  builder.setStreamUses(trace.stream_uses);
  for (const std::string& note : trace.notes) builder.note(note);
  return builder.finish();
}

}  // namespace

Recording readRmmRecording(std::string_view content, const std::string& file) {
  return fromTrace(trace::readRmm(content, file), file, Source::kRmm);
}

std::vector<Recording> readPytorchRecordings(std::string content, const std::string& file,
                                             std::optional<std::uint32_t> gpu) {
  const trace::Recordings read = trace::readPytorch(content, file, gpu);
  std::vector<Recording> recordings;
  for (std::size_t i = 0; i < read.traces.size(); ++i) {
    recordings.push_back(fromTrace(read.traces[i], file, Source::kPytorch));
    recordings.back().device = read.gpus[i];
  }
  return recordings;
}

Recording readSnapshotRecording(std::string_view, const std::string& file) {
  throw trace::TraceError(file, "is a snapshot of Cistern");
}

}  // namespace cistern::recording
