// The parts of the pickle that are read here:
//   {"device_traces": [[{"action", "addr", "size", "stream", "time_us", "frames", …}, …] for each
//                      device],
//    "segments": [{"device", "stream", "address", "total_size", "segment_pool_id", "blocks":
//                  [{"address", "size", "requested_size", "state", "frames"}, …]}, …],
//    "external_annotations": [{"name", "stage", "device", "time_us"}, …]}
// The same list or dict may stand in it many times over. So each entry is read once, and nothing
// here walks more than one level of a list without a bound.
#include "interop/trace/torch_snapshot.hpp"

#include <algorithm>
#include <map>
#include <unordered_set>

#include <fmt/format.h>

#include "interop/trace/hash.hpp"
#include "interop/trace/read_limits.hpp"
#include "interop/trace/torch_entries.hpp"
#include "interop/trace/unpickle.hpp"

namespace cistern::trace {
namespace {

class SnapshotReader {
 public:
  SnapshotReader(ByteSource& source, const std::string& file, Detail detail)
      : detail_(detail), entries_(file, detail), document_(unpickle(source, file, &entries_)) {}

  Snapshot read() {
    readTraces();
    readSegments();
    if (detail_ == Detail::kAll) readAnnotations();
    Snapshot snapshot;
    snapshot.notes = entries_.notes();
    snapshot.tables = entries_.finishTables();
    for (auto& [number, device] : devices_) snapshot.devices.push_back(std::move(device));
    return snapshot;
  }

 private:
  DeviceHistory& historyOf(std::uint32_t device);
  void readTraces();
  void readEvents(ValueId trace, DeviceHistory& into);
  void readSegments();
  void readSegment(ValueId segment);
  void readBlock(ValueId block, SnapshotBlock& at, DeviceHistory& into);
  std::optional<std::uint64_t> requestedOf(ValueId block);
  void readAnnotations();
  void readAnnotation(ValueId annotation);
  void requireFirstTime(ValueId entry);

  SnapshotFields& fields() { return entries_.fields(); }
  [[noreturn]] void failSecondTime() {
    fields().fail("expected each entry once, found one that stands in several places");
  }

  const Detail detail_;
  EntryReader entries_;
  PickleDocument document_;
  std::map<std::uint32_t, DeviceHistory> devices_;
  std::vector<bool> read_ =
      std::vector<bool>(document_.size());  // which values were read as entries
  // The addresses of live blocks, by device.
  std::map<std::uint32_t, std::unordered_set<std::uint64_t, SeededHash>> live_;
};

// A file of a few kilobytes could name one entry millions of times.
void SnapshotReader::requireFirstTime(ValueId entry) {
  if (read_[entry] || document_.kind(entry) == ValueKind::kTaken) failSecondTime();
  read_[entry] = true;
}

DeviceHistory& SnapshotReader::historyOf(std::uint32_t device) {
  DeviceHistory& history = devices_[device];
  history.device = device;
  return history;
}

// ---- Recorded events ----

void SnapshotReader::readTraces() {
  const ValueId list =
      fields().require(document_, document_.root(), "device_traces", ValueKind::kList);
  const std::span<const ValueId> traces = document_.items(list);
  for (std::size_t device = 0; device < traces.size(); ++device) {
    fields().place = fmt::format("device_traces[{}]", device);
    readEvents(traces[device], historyOf(static_cast<std::uint32_t>(device)));
  }
}

// Most entries were taken out while the pickle was read; a mark stands in the list for each.
void SnapshotReader::readEvents(ValueId trace, DeviceHistory& into) {
  if (document_.kind(trace) != ValueKind::kList) {
    fields().fail(fmt::format("expected a list, found {}", kindName(document_.kind(trace))));
  }
  std::deque<SnapshotEntry> taken = entries_.entriesOf(trace);
  const std::string list = fields().place;
  const std::span<const ValueId> items = document_.items(trace);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i] == PickleDocument::kTakenItem && !taken.empty()) {
      into.entries.push_back(taken.front());
      taken.pop_front();
    } else {
      fields().place = fmt::format("{}[{}]", list, i);
      requireFirstTime(items[i]);
      into.entries.push_back(entries_.read(document_, items[i]));
    }
    // A completed free alone is what a record of one entry keeps, and is no program.
    const SnapshotEntry& last = into.entries.back();
    if (last.isCall() && last.action() != SnapshotAction::kFreeCompleted) ++into.calls;
  }
}

// ---- Segments and live blocks ----

void SnapshotReader::readSegments() {
  fields().place = "the snapshot";
  const auto list = fields().look(document_, document_.root(), "segments", ValueKind::kList);
  if (!list) return;
  const std::span<const ValueId> segments = document_.items(*list);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    fields().place = fmt::format("segments[{}]", i);
    readSegment(segments[i]);
  }
}

void SnapshotReader::readSegment(ValueId segment) {
  DeviceHistory& into = historyOf(fields().device(document_, segment));
  SnapshotBlock at;
  at.address = fields().bits(document_, segment, "address");
  (void)fields().bits(document_, segment, "stream");
  at.stream = entries_.streamOf(document_, segment);
  if (detail_ == Detail::kAll) {
    at.pool = entries_.poolOf(document_, segment, "segment_pool_id");
  }
  const std::uint64_t begin = at.address;
  const std::span<const ValueId> blocks =
      document_.items(fields().require(document_, segment, "blocks", ValueKind::kList));
  const std::string list = fields().place;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    fields().place = fmt::format("{}.blocks[{}]", list, i);
    readBlock(blocks[i], at, into);
  }
  fields().place = list;
  const std::uint64_t total =
      fields().number(document_, segment, "total_size", kMaxBytes).value_or(at.address - begin);
  const auto expandable = document_.find(segment, "is_expandable");
  into.segments.push_back(
      {begin, total, at.stream, at.pool, expandable && document_.isTrue(*expandable)});
}

// Blocks lie end to end; old versions give them no address of their own. Moves `at` past the block.
void SnapshotReader::readBlock(ValueId block, SnapshotBlock& at, DeviceHistory& into) {
  requireFirstTime(block);
  if (fields().look(document_, block, "address", ValueKind::kInt)) {
    at.address = fields().bits(document_, block, "address");
  }
  const std::uint64_t bytes = fields().byteCount(document_, block, "size");
  const ValueId state = fields().require(document_, block, "state", ValueKind::kString);
  if (document_.text(state) == "active_allocated") {
    if (!live_[into.device].insert(at.address).second) {
      fields().fail(fmt::format("address 0x{:x} is that of two live blocks", at.address));
    }
    SnapshotBlock& live = into.live_blocks.emplace_back(at);
    live.bytes = requestedOf(block).value_or(bytes);
    const std::optional<ValueId> newest = entries_.newestOf(document_, block);
    const bool is_old = newest && !document_.find(block, "frames");
    live.stack = entries_.stackOf(document_, is_old ? *newest : block);
  }
  at.address += bytes;
}

std::optional<std::uint64_t> SnapshotReader::requestedOf(ValueId block) {
  if (const auto asked = fields().number(document_, block, "requested_size", kMaxBytes)) {
    return asked;
  }
  const std::optional<ValueId> newest = entries_.newestOf(document_, block);
  return newest ? fields().number(document_, *newest, "real_size", kMaxBytes) : std::nullopt;
}

// ---- Annotations ----

void SnapshotReader::readAnnotations() {
  const auto list = document_.find(document_.root(), "external_annotations");
  if (!list || document_.kind(*list) != ValueKind::kList) return;
  for (const ValueId annotation : document_.items(*list)) {
    if (document_.kind(annotation) == ValueKind::kDict) readAnnotation(annotation);
  }
  for (auto& [number, device] : devices_) {
    std::stable_sort(device.annotations.begin(), device.annotations.end(),
                     [](const SnapshotAnnotation& a, const SnapshotAnnotation& b) {
                       return a.time_us < b.time_us;
                     });
  }
}

// Programs put there what they like, so one of another kind is passed over. So is the end of a
// stretch of time.
void SnapshotReader::readAnnotation(ValueId annotation) {
  constexpr std::size_t kMost = std::size_t{1} << 16;
  constexpr std::size_t kMostKeys = 64;  // a look-up walks them
  if (document_.items(annotation).size() > 2 * kMostKeys) return;
  const auto found = [&](std::string_view key, ValueKind kind) {
    const auto value = document_.find(annotation, key);
    return value && document_.kind(*value) == kind ? value : std::nullopt;
  };
  const auto name = found("name", ValueKind::kString), time = found("time_us", ValueKind::kInt);
  const auto stage = found("stage", ValueKind::kString), gpu = found("device", ValueKind::kInt);
  if (!name || !time || (stage && document_.text(*stage) == "END")) return;
  const std::int64_t number = gpu ? document_.integer(*gpu) : 0;
  const auto device = devices_.find(static_cast<std::uint32_t>(number));
  if (device == devices_.end() || device->first != number) return;
  std::vector<SnapshotAnnotation>& into = device->second.annotations;
  if (into.size() < kMost) {
    into.push_back({document_.integer(*time), std::string(document_.text(*name))});
  }
}

}  // namespace

std::string gpuName(std::uint32_t device) { return fmt::format("cuda:{}", device); }

Snapshot readSnapshot(ByteSource& source, const std::string& file, Detail detail) {
  return SnapshotReader(source, file, detail).read();
}

}  // namespace cistern::trace
