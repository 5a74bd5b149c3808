// The parts of the document that are read here:
//   {"device_traces": [[{"action", "addr", "size", "stream", "time_us"}, …] for each device],
//    "segments": [{"device", "stream", "address", "blocks":
//                  [{"address", "size", "requested_size", "state"}, …]}, …]}
// The same list or dict may stand in it many times over. So each entry is read once, and nothing
// here walks more than one level of a list without a bound.
#include "interop/trace/torch_snapshot.hpp"

#include <map>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "allocator/base/bytes.hpp"
#include "interop/trace/hash.hpp"
#include "interop/trace/trace_error.hpp"

namespace cistern::trace {
namespace {

class SnapshotReader final : public ErrorSite {
 public:
  SnapshotReader(const PickleDocument& document, const std::string& file)
      : document_(document), file_(file) {}

  Snapshot read(std::optional<std::uint32_t> gpu) {
    readTraces();
    readSegments();
    return chosen(gpu);
  }

  [[noreturn]] void fail(const std::string& what) const override {
    throw TraceError(file_, place_ + ": " + what);
  }

 private:
  DeviceHistory& historyOf(std::uint32_t device);
  void readTraces();
  void readEvents(ValueId trace, DeviceHistory& into);
  void readEvent(ValueId event, std::size_t index, DeviceHistory& into);
  void readSegments();
  void readSegment(ValueId segment);
  void readBlock(ValueId block, SnapshotBlock& at, DeviceHistory& into);
  void requireFirstTime(ValueId entry);

  Snapshot chosen(std::optional<std::uint32_t> gpu);
  [[noreturn]] void failWithoutHistory(const std::string& of) const;

  // Fields of dicts, all by their key.
  ValueId require(ValueId dict, std::string_view key, ValueKind kind) const;
  std::optional<ValueId> look(ValueId dict, std::string_view key, ValueKind kind) const;
  std::int64_t integer(ValueId dict, std::string_view key) const;
  std::optional<std::int64_t> optionalInteger(ValueId dict, std::string_view key) const;
  std::uint64_t bits(ValueId dict, std::string_view key) const;
  std::uint64_t byteCount(ValueId dict, std::string_view key) const;
  std::uint32_t deviceOf(ValueId segment) const;

  const PickleDocument& document_;
  const std::string& file_;
  std::string place_ = "the snapshot";  // which entry is being read, in Python's terms
  std::map<std::uint32_t, DeviceHistory> devices_;
  std::vector<bool> entries_read_ = std::vector<bool>(document_.size());
  // The addresses of live blocks, by device.
  std::map<std::uint32_t, std::unordered_set<std::uint64_t, SeededHash>> live_;
};

// ---- Fields ----

// Null is as good as absent.
std::optional<ValueId> SnapshotReader::look(ValueId dict, std::string_view key,
                                            ValueKind kind) const {
  constexpr std::size_t kMostKeys = 64;  // PyTorch writes about ten; a look-up walks them
  if (document_.kind(dict) != ValueKind::kDict) {
    fail(fmt::format("expected a dict, found {}", kindName(document_.kind(dict))));
  }
  if (document_.items(dict).size() > 2 * kMostKeys) {
    fail(fmt::format("expected a dict of at most {} keys", kMostKeys));
  }
  const std::optional<ValueId> found = document_.find(dict, key);
  if (!found || document_.kind(*found) == ValueKind::kNone) return std::nullopt;
  if (kind == ValueKind::kInt && document_.kind(*found) == ValueKind::kWideInt) {
    fail(fmt::format("expected '{}' to be an int below 2^63, found a larger one", key));
  }
  if (document_.kind(*found) != kind) {
    fail(fmt::format("expected '{}' to be {}, found {}", key, kindName(kind),
                     kindName(document_.kind(*found))));
  }
  return found;
}

ValueId SnapshotReader::require(ValueId dict, std::string_view key, ValueKind kind) const {
  const std::optional<ValueId> found = look(dict, key, kind);
  if (!found) fail(fmt::format("expected '{}' to be {}, found none", key, kindName(kind)));
  return *found;
}

std::int64_t SnapshotReader::integer(ValueId dict, std::string_view key) const {
  return document_.integer(require(dict, key, ValueKind::kInt));
}

std::optional<std::int64_t> SnapshotReader::optionalInteger(ValueId dict,
                                                            std::string_view key) const {
  const std::optional<ValueId> found = look(dict, key, ValueKind::kInt);
  return found ? std::optional(document_.integer(*found)) : std::nullopt;
}

// Addresses and streams are pointers, which some versions write as signed.
std::uint64_t SnapshotReader::bits(ValueId dict, std::string_view key) const {
  return static_cast<std::uint64_t>(integer(dict, key));
}

std::uint64_t SnapshotReader::byteCount(ValueId dict, std::string_view key) const {
  const std::int64_t value = integer(dict, key);
  if (value < 0) fail(fmt::format("expected '{}' to be a size in bytes, found {}", key, value));
  return static_cast<std::uint64_t>(value);
}

std::uint32_t SnapshotReader::deviceOf(ValueId segment) const {
  constexpr std::int64_t kMost = 65'535;
  const std::int64_t device = optionalInteger(segment, "device").value_or(0);
  if (device >= 0 && device <= kMost) return static_cast<std::uint32_t>(device);
  fail(fmt::format("expected 'device' to be the number of a GPU, found {}", device));
}

// A file of a few kilobytes could name one entry millions of times.
void SnapshotReader::requireFirstTime(ValueId entry) {
  if (entries_read_[entry])
    fail("expected each entry once, found one that stands in several places");
  entries_read_[entry] = true;
}

DeviceHistory& SnapshotReader::historyOf(std::uint32_t device) {
  DeviceHistory& history = devices_[device];
  history.device = device;
  return history;
}

// ---- Recorded calls ----

void SnapshotReader::readTraces() {
  const auto traces = document_.items(require(document_.root(), "device_traces", ValueKind::kList));
  for (std::size_t device = 0; device < traces.size(); ++device) {
    place_ = fmt::format("device_traces[{}]", device);
    readEvents(traces[device], historyOf(static_cast<std::uint32_t>(device)));
  }
}

void SnapshotReader::readEvents(ValueId trace, DeviceHistory& into) {
  if (document_.kind(trace) != ValueKind::kList) {
    fail(fmt::format("expected a list, found {}", kindName(document_.kind(trace))));
  }
  const std::size_t list = place_.size();
  const auto events = document_.items(trace);
  for (std::size_t i = 0; i < events.size(); ++i) {
    place_.resize(list);
    fmt::format_to(std::back_inserter(place_), "[{}]", i);
    readEvent(events[i], i, into);
  }
}

// Null for actions that are not the program's own, such as segment_alloc or snapshot.
std::optional<SnapshotAction> actionOf(std::string_view name) {
  if (name == "alloc") return SnapshotAction::kAlloc;
  if (name == "free_requested") return SnapshotAction::kFreeRequested;
  if (name == "free_completed") return SnapshotAction::kFreeCompleted;
  return std::nullopt;
}

void SnapshotReader::readEvent(ValueId event, std::size_t index, DeviceHistory& into) {
  requireFirstTime(event);
  const auto action = actionOf(document_.text(require(event, "action", ValueKind::kString)));
  if (!action) return;
  SnapshotEvent& read = into.events.emplace_back();
  read.block = {bits(event, "addr"), byteCount(event, "size"), bits(event, "stream")};
  read.time_us = optionalInteger(event, "time_us").value_or(0);
  read.index = index;
  read.action = *action;
}

// ---- Live blocks ----

void SnapshotReader::readSegments() {
  place_ = "the snapshot";
  const auto list = look(document_.root(), "segments", ValueKind::kList);
  if (!list) return;
  const auto segments = document_.items(*list);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    place_ = fmt::format("segments[{}]", i);
    readSegment(segments[i]);
  }
}

void SnapshotReader::readSegment(ValueId segment) {
  DeviceHistory& into = historyOf(deviceOf(segment));
  SnapshotBlock at{bits(segment, "address"), 0, bits(segment, "stream")};
  const auto blocks = document_.items(require(segment, "blocks", ValueKind::kList));
  const std::string list = place_;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    place_ = fmt::format("{}.blocks[{}]", list, i);
    readBlock(blocks[i], at, into);
  }
}

// Blocks lie end to end; old versions give them no address of their own. Moves `at` past the block.
void SnapshotReader::readBlock(ValueId block, SnapshotBlock& at, DeviceHistory& into) {
  requireFirstTime(block);
  if (optionalInteger(block, "address")) at.address = bits(block, "address");
  const std::uint64_t bytes = byteCount(block, "size");
  if (document_.text(require(block, "state", ValueKind::kString)) == "active_allocated") {
    const bool asked = optionalInteger(block, "requested_size").has_value();
    const std::uint64_t requested = asked ? byteCount(block, "requested_size") : bytes;
    if (!live_[into.device].insert(at.address).second) {
      fail(fmt::format("address 0x{:x} is that of two live blocks", at.address));
    }
    into.live_blocks.push_back({at.address, requested, at.stream});
  }
  at.address += bytes;
}

// ---- Which devices ----

std::string liveText(const DeviceHistory& device) {
  std::uint64_t bytes = 0;
  for (const SnapshotBlock& block : device.live_blocks) bytes += block.bytes;
  const std::size_t count = device.live_blocks.size();
  return fmt::format("{} block{} of {}", count, count == 1 ? "" : "s", formatBytes(bytes));
}

constexpr const char* kHistory =
    "call torch.cuda.memory._record_memory_history(context=None, max_entries=10_000_000) before "
    "the "
    "steps, and _dump_snapshot after them";

void SnapshotReader::failWithoutHistory(const std::string& of) const {
  throw TraceError(file_, fmt::format("has no history of allocations{}; {}", of, kHistory));
}

Snapshot SnapshotReader::chosen(std::optional<std::uint32_t> gpu) {
  Snapshot snapshot;
  std::vector<std::string> recorded;
  DeviceHistory all;
  for (auto& [number, device] : devices_) {
    const bool live = !device.live_blocks.empty();
    all.live_blocks.insert(all.live_blocks.end(), device.live_blocks.begin(),
                           device.live_blocks.end());
    if (!device.events.empty()) {
      recorded.push_back(gpuName(number));
      if (!gpu || *gpu == number) snapshot.devices.push_back(std::move(device));
    } else if (live && !gpu) {
      snapshot.left_out.push_back(fmt::format("{} has {} and no history, and is left out",
                                              gpuName(number), liveText(device)));
    }
  }
  if (recorded.empty()) {
    const bool live = !all.live_blocks.empty();
    failWithoutHistory(live ? fmt::format(", only {} that lived at its end", liveText(all)) : "");
  }
  if (snapshot.devices.empty()) {
    throw TraceError(file_, fmt::format("has no history of {}; it has that of {}", gpuName(*gpu),
                                        fmt::join(recorded, ", ")));
  }
  snapshot.of_several = recorded.size() > 1;
  return snapshot;
}

}  // namespace

std::string gpuName(std::uint32_t device) { return fmt::format("cuda:{}", device); }

Snapshot readSnapshot(const PickleDocument& document, const std::string& file,
                      std::optional<std::uint32_t> gpu) {
  return SnapshotReader(document, file).read(gpu);
}

}  // namespace cistern::trace
