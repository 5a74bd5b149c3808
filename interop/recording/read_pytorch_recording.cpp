// A PyTorch memory snapshot as recordings: one for each GPU that has a history, or blocks or
// segments at its end.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "interop/recording/recording_builder.hpp"
#include "interop/recording/recording_readers.hpp"
#include "interop/recording/reserved_before.hpp"
#include "interop/trace/torch_replay.hpp"
#include "interop/trace/torch_snapshot.hpp"

namespace cistern::recording {
namespace {

using trace::DeviceHistory;
using trace::HistorySite;
using trace::SnapshotAction;
using trace::SnapshotBlock;
using trace::SnapshotEntry;
using trace::SnapshotTables;

// The tables' numbers are those of the recording, except that of a full table's row.
void addTables(RecordingBuilder& builder, const SnapshotTables& tables) {
  for (const trace::SnapshotFrame& frame : tables.frames) {
    builder.addFrame({frame.function, frame.file, frame.line});
  }
  for (std::size_t i = 1; i < tables.stacks.size(); ++i) {
    builder.addStack(tables.stacks[i].parent, tables.stacks[i].frame);
  }
  for (std::size_t i = 1; i < tables.labels.size(); ++i) {
    builder.addLabel(tables.labels[i].parent, tables.labels[i].name);
  }
  for (std::size_t i = 1; i < tables.pools.size(); ++i) {
    builder.addPool({tables.pools[i].first, tables.pools[i].second});
  }
}

class RecordingSink final : public trace::HistorySink {
 public:
  RecordingSink(const HistorySite& site, const SnapshotTables& tables, const DeviceHistory& history)
      : builder_(site), tables_(tables), reserved_(history), annotations_(history.annotations) {
    passOverEarlier(history);
    addTables(builder_, tables);
    builder_.expectEvents(history.entries.size() + history.live_blocks.size() +
                          reserved_.atStart().size() + annotations_.size());
    for (const Reserved& range : reserved_.atStart()) {
      const EventKind kind = range.expandable ? EventKind::kMap : EventKind::kReserve;
      builder_.memory(kind, range.begin, range.end - range.begin, streamName(range.stream),
                      range.pool);
    }
  }

  void allocate(const SnapshotBlock& block) override {
    const std::uint32_t pool = block.pool > 0 ? block.pool : reserved_.poolAt(block.address);
    builder_.allocate(block.bytes, streamName(block.stream),
                      {block.address, block.stack, block.label, pool});
  }
  void free(std::uint64_t allocation) override { builder_.free(allocation); }
  void endUses(std::uint64_t allocation) override { builder_.endUses(allocation); }
  void elapsed(std::uint64_t delta_us) override { builder_.setDelta(delta_us); }
  void began() override { builder_.setFirstRecorded(builder_.soFar().events.size()); }
  void setStreamUses(trace::StreamUses uses) override { builder_.setStreamUses(uses); }
  std::size_t streams() const override { return builder_.streams(); }

  bool other(const SnapshotEntry& entry, std::size_t index) override {
    switch (entry.action()) {
      case SnapshotAction::kSegmentAlloc:
        return memory(EventKind::kReserve, entry, index);
      case SnapshotAction::kSegmentFree:
        return memory(EventKind::kRelease, entry, index);
      case SnapshotAction::kSegmentMap:
        return memory(EventKind::kMap, entry, index);
      case SnapshotAction::kSegmentUnmap:
        return memory(EventKind::kUnmap, entry, index);
      case SnapshotAction::kOom:
        return failed(entry);
      case SnapshotAction::kSnapshot:
        return builder_.mark("a snapshot was taken"), true;
      case SnapshotAction::kAnnotate:
        return builder_.mark(tables_.labels[entry.label].name), true;
      default:
        return false;
    }
  }

  std::optional<std::int64_t> annotate(std::int64_t until_us) override {
    if (next_ == annotations_.size() || annotations_[next_].time_us > until_us) {
      return std::nullopt;
    }
    builder_.mark(annotations_[next_].name);
    return annotations_[next_++].time_us;
  }

  RecordingBuilder& builder() { return builder_; }

 private:
  // The record may have forgotten what came first, or know no times.
  void passOverEarlier(const DeviceHistory& history) {
    const bool has_times =
        std::any_of(history.entries.begin(), history.entries.end(),
                    [](const SnapshotEntry& entry) { return entry.time_us != 0; });
    if (!has_times) next_ = annotations_.size();
    while (next_ < annotations_.size() &&
           annotations_[next_].time_us < history.entries.front().time_us) {
      ++next_;
    }
  }

  std::uint64_t streamName(std::uint32_t stream) const { return tables_.streams[stream]; }

  bool memory(EventKind kind, const SnapshotEntry& entry, std::size_t index) {
    const std::uint32_t pool = reserved_.take(entry, index);
    builder_.memory(kind, entry.address, entry.bytes, streamName(entry.stream), pool);
    builder_.setWhere({entry.address, entry.stack, entry.label, pool});
    return true;
  }

  // PyTorch's entry has the request as it was rounded for its own blocks.
  bool failed(const SnapshotEntry& entry) {
    Failure failure;
    failure.requested = entry.bytes;
    failure.device_free = entry.address;
    builder_.fail(streamName(entry.stream), {0, entry.stack, entry.label, entry.pool},
                  std::move(failure));
    return true;
  }

  RecordingBuilder builder_;
  const SnapshotTables& tables_;
  ReservedBefore reserved_;
  const std::vector<trace::SnapshotAnnotation> annotations_;
  std::size_t next_ = 0;  // of annotations_
};

Recording recordingOf(DeviceHistory& history, const trace::Snapshot& snapshot,
                      const std::string& file) {
  HistorySite site(file, history.device);
  RecordingSink sink(site, snapshot.tables, history);
  trace::replayHistory(history, site, sink);
  RecordingBuilder& builder = sink.builder();
  builder.setSource(Source::kPytorch);
  builder.setDevice(trace::gpuName(history.device));
  for (const std::string& note : snapshot.notes) builder.note(note);
  return builder.finish();
}

bool isEmpty(const DeviceHistory& device) {
  return device.calls == 0 && device.live_blocks.empty() && device.segments.empty();
}

}  // namespace

std::vector<Recording> readPytorchRecordings(trace::ByteSource& source, const std::string& file,
                                             std::optional<std::uint32_t> gpu) {
  trace::Snapshot snapshot = trace::readSnapshot(source, file, trace::SnapshotDetail::kAll);
  std::erase_if(snapshot.devices, isEmpty);
  std::vector<std::string> gpus;
  std::vector<Recording> read;
  for (DeviceHistory& history : snapshot.devices) {
    gpus.push_back(trace::gpuName(history.device));
    if (gpu && *gpu != history.device) continue;
    read.push_back(recordingOf(history, snapshot, file));
  }
  if (gpus.empty()) {
    throw trace::TraceError(
        file, fmt::format("has neither a history nor a block; {}", trace::kHowToRecordPytorch));
  }
  if (read.empty()) {
    throw trace::TraceError(file, fmt::format("has nothing of {}; it has {}", trace::gpuName(*gpu),
                                              fmt::join(gpus, ", ")));
  }
  return read;
}

}  // namespace cistern::recording
