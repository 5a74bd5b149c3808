// A PyTorch memory snapshot as recordings: one for each GPU that has a history, or blocks or
// segments at its end. For a replay, one for each that has a history.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "allocator/base/bytes.hpp"
#include "interop/recording/recording_readers.hpp"
#include "interop/recording/torch_history.hpp"
#include "interop/trace/trace_error.hpp"

namespace cistern::recording {
namespace {

using trace::Detail;
using trace::DeviceHistory;
using trace::gpuName;
using trace::Snapshot;
using trace::SnapshotBlock;
using trace::TraceError;

bool isRecorded(const DeviceHistory& device, Detail detail) {
  if (device.calls > 0) return true;
  return detail == Detail::kAll && !(device.live_blocks.empty() && device.segments.empty());
}

std::string textOf(const std::vector<SnapshotBlock>& live) {
  std::uint64_t bytes = 0;
  for (const SnapshotBlock& block : live) bytes += block.bytes;
  return fmt::format("{} block{} of {}", live.size(), live.size() == 1 ? "" : "s",
                     formatBytes(bytes));
}

[[noreturn]] void failEmpty(const Snapshot& snapshot, const std::string& file, Detail detail) {
  std::vector<SnapshotBlock> live;
  for (const DeviceHistory& device : snapshot.devices)
    live.insert(live.end(), device.live_blocks.begin(), device.live_blocks.end());
  const std::string only =
      live.empty() ? "" : fmt::format(", only {} that lived at its end", textOf(live));
  const std::string what = detail == Detail::kAll ? "has neither a history nor a block"
                                                  : "has no history of allocations" + only;
  throw TraceError(file, fmt::format("{}; {}", what, trace::kHowToRecordPytorch));
}

[[noreturn]] void failWithout(std::uint32_t gpu, const std::vector<std::string>& gpus,
                              const std::string& file, Detail detail) {
  const bool all = detail == Detail::kAll;
  throw TraceError(file, fmt::format("has {} of {}; it has {}{}", all ? "nothing" : "no history",
                                     gpuName(gpu), all ? "" : "that of ", fmt::join(gpus, ", ")));
}

}  // namespace

FileContents readPytorch(trace::ByteSource& source, const std::string& file, Detail detail,
                         std::optional<std::uint32_t> gpu) {
  Snapshot snapshot = trace::readSnapshot(source, file, detail);
  FileContents read;
  std::vector<std::string> gpus;
  for (DeviceHistory& history : snapshot.devices) {
    if (isRecorded(history, detail)) {
      gpus.push_back(gpuName(history.device));
      if (gpu && *gpu != history.device) continue;
      Recording& recording =
          read.recordings.emplace_back(recordingOf(history, snapshot.tables, file, detail));
      recording.notes.insert(recording.notes.end(), snapshot.notes.begin(), snapshot.notes.end());
    } else if (!gpu && !history.live_blocks.empty()) {
      read.left_out.push_back(fmt::format("{} has {} and no history, and is left out",
                                          gpuName(history.device), textOf(history.live_blocks)));
    }
  }
  read.of_several = gpus.size() > 1;
  if (gpus.empty()) failEmpty(snapshot, file, detail);
  if (read.recordings.empty()) failWithout(*gpu, gpus, file, detail);
  return read;
}

}  // namespace cistern::recording
