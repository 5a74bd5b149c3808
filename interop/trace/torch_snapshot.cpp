// The parts of the document that are read here:
//   {"device_traces": [[{"action", "addr", "size", "stream", "time_us"}, …] for each device],
//    "segments": [{"device", "stream", "address", "blocks":
//                  [{"address", "size", "requested_size", "state"}, …]}, …]}
// The same list or dict may stand in it many times over, so nothing here walks more than one level
// of a list without a bound.
#include "interop/trace/torch_snapshot.hpp"

#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include "interop/trace/hash.hpp"
#include "interop/trace/trace_error.hpp"

namespace cistern::trace {
namespace {

class SnapshotReader final : public ErrorSite {
 public:
  SnapshotReader(const PickleDocument& document, const std::string& file)
      : document_(document), file_(file) {}

  Snapshot read() {
    chooseDevice();
    readEvents();
    readSegments();
    return std::move(snapshot_);
  }

  [[noreturn]] void fail(const std::string& what) const override {
    throw TraceError(file_, place_ + ": " + what);
  }

 private:
  void chooseDevice();
  void readEvents();
  void readEvent(ValueId event, std::size_t index);
  void readSegments();
  void readSegment(ValueId segment);
  void readBlock(ValueId block, SnapshotBlock& at);

  // Fields of dicts, all by their key.
  ValueId require(ValueId dict, std::string_view key, ValueKind kind) const;
  std::optional<ValueId> look(ValueId dict, std::string_view key, ValueKind kind) const;
  std::int64_t integer(ValueId dict, std::string_view key) const;
  std::optional<std::int64_t> optionalInteger(ValueId dict, std::string_view key) const;
  std::uint64_t bits(ValueId dict, std::string_view key) const;
  std::uint64_t byteCount(ValueId dict, std::string_view key) const;

  const PickleDocument& document_;
  const std::string& file_;
  std::string place_ = "the snapshot";  // which entry is being read, in Python's terms
  Snapshot snapshot_;
  std::size_t blocks_read_ = 0;
  std::unordered_set<std::uint64_t, SeededHash> live_;  // addresses of live blocks
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

// ---- Recorded calls ----

void SnapshotReader::chooseDevice() {
  const auto traces = document_.items(require(document_.root(), "device_traces", ValueKind::kList));
  std::size_t total = 0;
  std::size_t most = 0;
  for (std::size_t device = 0; device < traces.size(); ++device) {
    const std::size_t count = document_.items(traces[device]).size();
    total += count;
    if (count <= most) continue;
    most = count;
    snapshot_.device = device;
  }
  if (total == most) return;
  snapshot_.note = fmt::format("device {} of {}: the {} events of the others are left out",
                               snapshot_.device, traces.size(), total - most);
}

void SnapshotReader::readEvents() {
  const auto traces = document_.items(require(document_.root(), "device_traces", ValueKind::kList));
  if (traces.empty()) return;
  place_ = fmt::format("device_traces[{}]", snapshot_.device);
  const ValueId trace = traces[snapshot_.device];
  if (document_.kind(trace) != ValueKind::kList) {
    fail(fmt::format("expected a list, found {}", kindName(document_.kind(trace))));
  }
  const std::string list = place_;
  const auto events = document_.items(trace);
  for (std::size_t i = 0; i < events.size(); ++i) {
    place_.resize(list.size());
    fmt::format_to(std::back_inserter(place_), "[{}]", i);
    readEvent(events[i], i);
  }
}

// Null for actions that are not the program's own, such as segment_alloc or snapshot.
std::optional<SnapshotAction> actionOf(std::string_view name) {
  if (name == "alloc") return SnapshotAction::kAlloc;
  if (name == "free_requested") return SnapshotAction::kFreeRequested;
  if (name == "free_completed") return SnapshotAction::kFreeCompleted;
  return std::nullopt;
}

void SnapshotReader::readEvent(ValueId event, std::size_t index) {
  const auto action = actionOf(document_.text(require(event, "action", ValueKind::kString)));
  if (!action) return;
  SnapshotEvent& read = snapshot_.events.emplace_back();
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
  const std::int64_t device = optionalInteger(segment, "device").value_or(0);
  if (device != static_cast<std::int64_t>(snapshot_.device)) return;
  SnapshotBlock at{bits(segment, "address"), 0, bits(segment, "stream")};
  const auto blocks = document_.items(require(segment, "blocks", ValueKind::kList));
  blocks_read_ += blocks.size();
  if (blocks_read_ > document_.size()) fail("expected each block once, found shared lists of them");
  const std::string list = place_;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    place_ = fmt::format("{}.blocks[{}]", list, i);
    readBlock(blocks[i], at);
  }
}

// Blocks lie end to end; old versions give them no address of their own. Moves `at` past the block.
void SnapshotReader::readBlock(ValueId block, SnapshotBlock& at) {
  if (optionalInteger(block, "address")) at.address = bits(block, "address");
  const std::uint64_t bytes = byteCount(block, "size");
  if (document_.text(require(block, "state", ValueKind::kString)) == "active_allocated") {
    const bool asked = optionalInteger(block, "requested_size").has_value();
    const std::uint64_t requested = asked ? byteCount(block, "requested_size") : bytes;
    if (!live_.insert(at.address).second) {
      fail(fmt::format("address 0x{:x} is that of two live blocks", at.address));
    }
    snapshot_.live_blocks.push_back({at.address, requested, at.stream});
  }
  at.address += bytes;
}

}  // namespace

Snapshot readSnapshot(const PickleDocument& document, const std::string& file) {
  return SnapshotReader(document, file).read();
}

}  // namespace cistern::trace
