#include "interop/trace/torch_entries.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "interop/trace/read_limits.hpp"

namespace cistern::trace {
namespace {

struct ActionName {
  std::string_view name;
  SnapshotAction action;
};

constexpr std::array kActions = {
    ActionName{"alloc", SnapshotAction::kAlloc},
    ActionName{"free_requested", SnapshotAction::kFreeRequested},
    ActionName{"free_completed", SnapshotAction::kFreeCompleted},
    ActionName{"segment_alloc", SnapshotAction::kSegmentAlloc},
    ActionName{"segment_free", SnapshotAction::kSegmentFree},
    ActionName{"segment_map", SnapshotAction::kSegmentMap},
    ActionName{"segment_unmap", SnapshotAction::kSegmentUnmap},
    ActionName{"oom", SnapshotAction::kOom},
    ActionName{"snapshot", SnapshotAction::kSnapshot},
    ActionName{"annotate", SnapshotAction::kAnnotate},
    ActionName{"user_defined", SnapshotAction::kAnnotate},
};

SnapshotAction actionOf(std::string_view name) {
  for (const ActionName& action : kActions) {
    if (action.name == name) return action.action;
  }
  return SnapshotAction::kOther;
}

bool isMemory(SnapshotAction action) {
  return action >= SnapshotAction::kAlloc && action <= SnapshotAction::kSegmentUnmap;
}

// Replays need the program's own calls alone.
bool isNeeded(SnapshotAction action, Detail detail) {
  if (detail == Detail::kAll) return true;
  return action >= SnapshotAction::kAlloc && action <= SnapshotAction::kFreeCompleted;
}

}  // namespace

// ---- Taking ----

bool EntryReader::take(PickleDocument& document, ValueId list, ValueId dict) {
  if (!document.find(dict, "action")) return false;
  SnapshotEntry entry;
  try {
    entry = read(document, dict);
  } catch (const TraceError&) {
    return false;
  }
  if (!last_ || list != last_list_) {
    last_ = &taken_[list];
    last_list_ = list;
  }
  last_->push_back(entry);
  const std::size_t tables = tables_.bytes();
  document.charge(sizeof(SnapshotEntry) + tables - std::exchange(charged_, tables));
  document.take(dict, 0);
  return true;
}

std::deque<SnapshotEntry> EntryReader::entriesOf(ValueId list) {
  last_ = nullptr;
  const auto found = taken_.find(list);
  if (found == taken_.end()) return {};
  std::deque<SnapshotEntry> entries = std::move(found->second);
  taken_.erase(found);
  return entries;
}

// ---- An entry ----

SnapshotEntry EntryReader::read(PickleDocument& document, ValueId dict) {
  const ValueId name = fields_.require(document, dict, "action", ValueKind::kString);
  const SnapshotAction action = actionOf(document.text(name));
  SnapshotEntry entry;
  if (isNeeded(action, detail_)) {
    entry.action_number = static_cast<std::uint32_t>(action) & 15;
    if (isMemory(action)) {
      entry.address = fields_.bits(document, dict, "addr");
      entry.bytes = fields_.byteCount(document, dict, "size");
      entry.stream = tables_.stream(fields_.bits(document, dict, "stream"));
    } else if (action == SnapshotAction::kOom) {
      entry.address = fields_.number(document, dict, "device_free", kMaxBytes).value_or(0);
      entry.bytes = fields_.byteCount(document, dict, "size");
      entry.stream = streamOf(document, dict);
    }
    entry.time_us = timeOf(document, dict);
  }
  entry.stack = stackOf(document, dict);
  if (detail_ == Detail::kAll) {
    entry.label = labelOf(document, dict) & 0x0fff'ffff;
    entry.pool = poolOf(document, dict, "pool_id");
  }
  return entry;
}

std::uint32_t EntryReader::streamOf(const PickleDocument& document, ValueId dict) {
  const auto found = fields_.lookIfSound(document, dict, "stream", ValueKind::kInt);
  return tables_.stream(found ? static_cast<std::uint64_t>(document.integer(*found)) : 0);
}

// An entry whose time is odd came with the one before it.
std::int64_t EntryReader::timeOf(const PickleDocument& document, ValueId dict) {
  const auto time = fields_.number(document, dict, "time_us", kLongestUs);
  if (time) return static_cast<std::int64_t>(*time);
  return document.find(dict, "time_us") ? SnapshotEntry::kNoTime : 0;
}

// "N/A" is how PyTorch says that nothing is being compiled.
std::uint32_t EntryReader::labelOf(const PickleDocument& document, ValueId dict) {
  const std::string_view compiled = fields_.text(document, dict, "compile_context");
  const std::string_view user = fields_.text(document, dict, "user_metadata");
  if (tables_.isFull()) return 0;
  return tables_.label(compiled == "N/A" ? 0 : tables_.label(0, compiled), user);
}

std::uint32_t EntryReader::poolOf(const PickleDocument& document, ValueId dict,
                                  std::string_view key) {
  const std::optional<ValueId> pair = fields_.lookIfSound(document, dict, key, ValueKind::kTuple);
  if (!pair) return 0;
  const std::span<const ValueId> ids = document.items(*pair);
  const auto isInt = [&](ValueId id) { return document.kind(id) == ValueKind::kInt; };
  if (ids.size() != 2 || !isInt(ids[0]) || !isInt(ids[1])) {
    fields_.countOdd(key);
    return 0;
  }
  if (tables_.isFull()) return 0;
  return tables_.pool(static_cast<std::uint64_t>(document.integer(ids[0])),
                      static_cast<std::uint64_t>(document.integer(ids[1])));
}

// ---- Stacks ----

std::uint32_t EntryReader::stackOf(PickleDocument& document, ValueId dict) {
  const std::optional<ValueId> found = document.find(dict, "frames");
  if (!found || document.kind(*found) == ValueKind::kNone) return 0;
  if (document.kind(*found) == ValueKind::kTaken) {
    const std::uint32_t number = document.takenAs(*found);
    return number < tables_.tables().stacks.size() ? number : 0;
  }
  if (document.kind(*found) != ValueKind::kList) {
    fields_.countOdd("frames");
    return 0;
  }
  const bool all = detail_ == Detail::kAll;
  const std::uint32_t stack = all ? stackOfFrames(document, *found) : 0;
  document.take(*found, stack);
  return stack;
}

std::optional<ValueId> EntryReader::newestOf(const PickleDocument& document, ValueId block) {
  const auto history = fields_.lookIfSound(document, block, "history", ValueKind::kList);
  if (!history || document.items(*history).empty()) return std::nullopt;
  const ValueId newest = document.items(*history).front();
  return document.kind(newest) == ValueKind::kDict ? std::optional(newest) : std::nullopt;
}

// The list begins with the innermost frame.
std::uint32_t EntryReader::stackOfFrames(const PickleDocument& document, ValueId list) {
  const std::span<const ValueId> frames = document.items(list);
  std::uint32_t stack = 0;
  for (std::size_t i = frames.size(); i-- > 0;) {
    if (document.kind(frames[i]) != ValueKind::kDict) {
      fields_.countOdd("frames");
      continue;
    }
    const std::uint32_t frame = frameOf(document, frames[i]);
    if (tables_.isFull()) return 0;
    stack = tables_.stack(stack, frame);
  }
  return stack;
}

std::uint32_t EntryReader::frameOf(const PickleDocument& document, ValueId dict) {
  const auto known = frame_ids_.find(dict);
  if (known != frame_ids_.end()) return known->second;
  constexpr std::uint64_t kMostLines = 0xffff'ffff;
  const std::uint64_t line = fields_.number(document, dict, "line", kMostLines).value_or(0);
  if (tables_.isFull()) return 0;
  const std::uint32_t frame =
      tables_.frame(fields_.text(document, dict, "name"), fields_.text(document, dict, "filename"),
                    static_cast<std::uint32_t>(line));
  if (!tables_.isFull()) frame_ids_.emplace(dict, frame);
  return frame;
}

// ---- Notes ----

// PyTorch's own streams are addresses. A program that counts its streams has a stream 1, too.
std::vector<std::string> EntryReader::notes() const {
  std::vector<std::string> notes = fields_.notes();
  const auto& streams = tables_.tables().streams;
  const auto has = [&](std::uint64_t name) {
    return std::find(streams.begin(), streams.end(), name) != streams.end();
  };
  if (has(kPerThreadStream) && !has(kLegacyStream)) {
    notes.push_back(
        "Stream 0x2 is cudaStreamPerThread, another stream in each thread. The file does not tell "
        "threads apart, so it counts as one stream.");
  }
  return notes;
}

}  // namespace cistern::trace
