#include "interop/recording/trace_of.hpp"

#include "interop/trace/builder.hpp"

namespace cistern::recording {
namespace {

// A recording's invariants are those of a trace, so the builder has nothing to complain of.
class RecordingSite final : public trace::ErrorSite {
 public:
  explicit RecordingSite(const std::string& file) : file_(file) {}
  [[noreturn]] void fail(const std::string& what) const override {
    throw trace::TraceError(file_, what);
  }

 private:
  const std::string& file_;
};

void add(trace::TraceBuilder& builder, const Recording& recording, const Event& event) {
  if (event.kind == EventKind::kAllocate) {
    builder.allocate(event.value, recording.streams[event.stream]);
  } else if (event.kind == EventKind::kFree) {
    builder.free(event.value);
  } else {
    builder.endUses(event.value);
  }
}

}  // namespace

trace::Trace traceOf(const Recording& recording) {
  const RecordingSite site(recording.file);
  trace::TraceBuilder builder(site);
  std::uint64_t last_us = 0;
  for (const Event& event : recording.events) {
    if (event.kind > EventKind::kUsesEnd) continue;
    add(builder, recording, event);
    if (recording.has_times) builder.setDelta(event.time_us - last_us);
    last_us = event.time_us;
  }
  builder.rename(recording.name);
  for (const std::string& note : recording.notes) builder.note(note);
  builder.setStreamUses(recording.stream_uses);
  return builder.finish();
}

}  // namespace cistern::recording
