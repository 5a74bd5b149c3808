// A PyTorch memory snapshot as traces, one for each GPU that has a history.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "allocator/base/bytes.hpp"
#include "interop/trace/builder.hpp"
#include "interop/trace/readers.hpp"
#include "interop/trace/torch_replay.hpp"
#include "interop/trace/torch_snapshot.hpp"

namespace cistern::trace {
namespace {

class TraceSink final : public HistorySink {
 public:
  TraceSink(const ErrorSite& site, const SnapshotTables& tables)
      : builder_(site), tables_(tables) {}

  void allocate(const SnapshotBlock& block) override {
    builder_.allocate(block.bytes, tables_.streams[block.stream]);
  }
  void free(std::uint64_t allocation) override { builder_.free(allocation); }
  void endUses(std::uint64_t allocation) override { builder_.endUses(allocation); }
  bool other(const SnapshotEntry&, std::size_t) override { return false; }
  void elapsed(std::uint64_t delta_us) override { builder_.setDelta(delta_us); }
  void setStreamUses(StreamUses uses) override { builder_.setStreamUses(uses); }
  std::size_t streams() const override { return builder_.streams(); }

  void note(const std::string& text) { builder_.note(text); }
  Trace finish() { return builder_.finish(); }

 private:
  TraceBuilder builder_;
  const SnapshotTables& tables_;
};

std::string liveText(const DeviceHistory& device) {
  std::uint64_t bytes = 0;
  for (const SnapshotBlock& block : device.live_blocks) bytes += block.bytes;
  const std::size_t count = device.live_blocks.size();
  return fmt::format("{} block{} of {}", count, count == 1 ? "" : "s", formatBytes(bytes));
}

[[noreturn]] void failWithoutHistory(const Snapshot& snapshot, const std::string& file) {
  DeviceHistory all;
  for (const DeviceHistory& device : snapshot.devices) {
    all.live_blocks.insert(all.live_blocks.end(), device.live_blocks.begin(),
                           device.live_blocks.end());
  }
  const std::string only =
      all.live_blocks.empty() ? "" : fmt::format(", only {} that lived at its end", liveText(all));
  throw TraceError(file,
                   fmt::format("has no history of allocations{}; {}", only, kHowToRecordPytorch));
}

std::vector<std::string> recordedGpus(const Snapshot& snapshot) {
  std::vector<std::string> names;
  for (const DeviceHistory& device : snapshot.devices) {
    if (device.calls > 0) names.push_back(gpuName(device.device));
  }
  return names;
}

std::vector<std::string> leftOut(const Snapshot& snapshot) {
  std::vector<std::string> texts;
  for (const DeviceHistory& device : snapshot.devices) {
    if (device.calls > 0 || device.live_blocks.empty()) continue;
    texts.push_back(fmt::format("{} has {} and no history, and is left out", gpuName(device.device),
                                liveText(device)));
  }
  return texts;
}

}  // namespace

Recordings readPytorch(ByteSource& source, const std::string& file,
                       std::optional<std::uint32_t> gpu) {
  Snapshot snapshot = readSnapshot(source, file, SnapshotDetail::kCalls);
  const std::vector<std::string> recorded = recordedGpus(snapshot);
  if (recorded.empty()) failWithoutHistory(snapshot, file);
  Recordings read;
  read.of_several = recorded.size() > 1;
  if (!gpu) read.left_out = leftOut(snapshot);
  for (DeviceHistory& history : snapshot.devices) {
    if (history.calls == 0 || (gpu && *gpu != history.device)) continue;
    HistorySite site(file, history.device);
    TraceSink sink(site, snapshot.tables);
    replayHistory(history, site, sink);
    for (const std::string& note : snapshot.notes) sink.note(note);
    read.traces.push_back(sink.finish());
    read.gpus.push_back(gpuName(history.device));
  }
  if (!read.traces.empty()) return read;
  throw TraceError(file, fmt::format("has no history of {}; it has that of {}", gpuName(*gpu),
                                     fmt::join(recorded, ", ")));
}

}  // namespace cistern::trace
