#include "allocator/history/recording_text.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "allocator/base/text.hpp"
#include "allocator/history/host_stack.hpp"
#include "allocator/history/label_tree.hpp"

namespace cistern {
namespace {

LivingBlock blockOf(const HistoryEvent& event, bool pending) {
  return {event.address, event.bytes, event.stream, event.stack, event.label, event.pool, pending};
}

// The names of WhyUnused, as recordings spell them.
constexpr const char* kWhy[] = {"too_small",  "kept_whole",    "other_stream", "incomplete",
                                "other_pool", "held_in_place", "freed_since"};

// The device's figures have no part in a shortage of host memory.
std::string factsOf(const OutOfMemoryReport& report) {
  std::string text =
      fmt::format(R"({{"requested":{},"rounded":{},)", report.requested, report.rounded);
  if (report.location == Location::kDevice) {
    text += fmt::format(
        R"("limit":{},"device_total":{},"device_free":{},"reserved":{},"allocated":{},)",
        report.limit, report.device_total, report.device_free, report.reserved, report.allocated);
  }
  text += R"("unused":[)";
  const auto end = std::back_inserter(text);
  for (const UnusedMemory& part : report.unused) {
    fmt::format_to(end, R"({}{{"why":"{}","bytes":{},"largest":{}}})",
                   &part == &report.unused.front() ? "" : ",", kWhy[std::size_t(part.why)],
                   part.bytes, part.largest);
  }
  fmt::format_to(end, R"(],"advice":{},"device_error":{}}})", quotedJson(report.advice()),
                 quotedJson(report.device_error));
  return text;
}

}  // namespace

HistoryStart startOf(const HistoryPart& whole) {
  HistoryStart start{{}, whole.reserved};
  std::unordered_map<Address, LivingBlock> living;
  for (const LivingBlock& block : whole.living) living[block.address] = block;
  for (auto at = whole.events.rbegin(); at != whole.events.rend(); ++at) {
    const HistoryEvent& event = *at;
    const Address end = event.address + event.bytes;
    const auto range = [&](bool pages) {
      return ReservedRange{event.address, end, event.stream, event.pool, pages, event.location};
    };
    switch (event.kind) {
      case HistoryKind::kAllocate:
        living.erase(event.address);
        break;
      case HistoryKind::kFree:
        living[event.address] = blockOf(event, false);
        break;
      case HistoryKind::kUsesEnd:
        living[event.address] = blockOf(event, true);
        break;
      case HistoryKind::kReserve:
      case HistoryKind::kMap:
        start.reserved.remove(event.address, end);
        break;
      case HistoryKind::kRelease:
        start.reserved.add(range(false));
        break;
      case HistoryKind::kUnmap:
        start.reserved.add(range(true));
        break;
      case HistoryKind::kFailed:
      case HistoryKind::kMark:
        break;
    }
  }
  for (const auto& [address, block] : living) start.living.push_back(block);
  return start;
}

// ---- Lines --------------------------------------------------------------------------------------

void RecordingText::begin(const HistoryStart& start, const std::vector<MempoolId_t>& pools,
                          bool failure) {
  pools_ = pools;
  const auto pending = std::ranges::count_if(start.living, &LivingBlock::pending);
  const std::size_t first =
      start.reserved.all().size() + start.living.size() + std::size_t(pending);
  const std::string more =
      fmt::format(R"(, "recording": 1, "device": {}, "first_recorded": {}{})",
                  quotedJson(names_->device), first, failure ? R"(, "dump": true)" : "");
  lines_.comment(headerComment(names_->settings.name, "recorded", more));
  for (const auto& [address, range] : start.reserved.all())
    addRange(range.pages ? "map" : "alloc", range, 0);
  std::vector<LivingBlock> blocks = start.living;
  std::ranges::sort(blocks, {}, &LivingBlock::address);
  for (const LivingBlock& block : blocks) addAllocation(block, 0);
  for (const LivingBlock& block : blocks) {
    if (block.pending) addFree(block.address, true, 0);
  }
}

void RecordingText::add(const HistoryPart& part) {
  pools_ = part.pools;
  if (part.lost != 0) {
    lines_.comment(fmt::format(
        "{} events were lost here: they came faster than they could be written", part.lost));
  }
  auto note = part.notes.begin();
  for (std::size_t i = 0; i < part.events.size(); ++i) {
    while (note != part.notes.end() && note->event < part.first + i) ++note;
    const bool noted = note != part.notes.end() && note->event == part.first + i;
    addEvent(part.events[i], noted ? &*note : nullptr);
  }
}

void RecordingText::addEvent(const HistoryEvent& event, const HistoryNote* note) {
  const std::uint64_t delta = deltaTo(event.time_us);
  const auto range = [&](std::string_view kind) {
    const Address end = event.address + event.bytes;
    addRange(kind, {event.address, end, event.stream, event.pool, false, event.location}, delta,
             event.stays_mapped);
  };
  switch (event.kind) {
    case HistoryKind::kAllocate:
      return addAllocation(blockOf(event, false), delta);
    case HistoryKind::kFree:
      return addFree(event.address, event.pending, delta);
    case HistoryKind::kUsesEnd:
      return addUsesEnd(event.address, delta);
    case HistoryKind::kReserve:
      return range("alloc");
    case HistoryKind::kRelease:
      return range("free");
    case HistoryKind::kMap:
      return range("map");
    case HistoryKind::kUnmap:
      return range("unmap");
    case HistoryKind::kFailed:
      return addFailure(event, note, delta);
    case HistoryKind::kMark:
      return lines_.mark(note ? note->mark : "", delta);
  }
}

std::uint64_t RecordingText::deltaTo(std::uint64_t time_us) {
  return time_us - std::exchange(last_us_, time_us);
}

// An event that was lost may have freed what lies there.
void RecordingText::addAllocation(const LivingBlock& block, std::uint64_t delta) {
  if (living_.contains(block.address)) addFree(block.address, false, 0);
  pending_.erase(block.address);
  const std::uint32_t stack = stackNumber(block.stack), label = labelNumber(block.label);
  const std::uint32_t pool = poolNumber(block.pool);
  lines_.allocation(block.bytes, streamNumber(block.stream), delta,
                    {block.address, stack, label, pool});
  living_[block.address] = allocations_++;
}

// The time of an event of an unknown block goes to the next line.
void RecordingText::addFree(Address address, bool pending, std::uint64_t delta) {
  const auto known = living_.find(address);
  if (known == living_.end()) return void(last_us_ -= delta);
  lines_.free(known->second, delta);
  if (pending) pending_[address] = known->second;
  living_.erase(known);
}

void RecordingText::addUsesEnd(Address address, std::uint64_t delta) {
  const auto known = pending_.find(address);
  if (known == pending_.end()) return void(last_us_ -= delta);
  lines_.usesEnd(known->second, delta);
  pending_.erase(known);
}

void RecordingText::addRange(std::string_view kind, const ReservedRange& range, std::uint64_t delta,
                             bool stays_mapped) {
  const std::uint32_t pool = poolNumber(range.pool);
  lines_.memory(kind, range.begin, range.end - range.begin, streamNumber(range.stream), pool, delta,
                range.location, stays_mapped);
}

void RecordingText::addFailure(const HistoryEvent& event, const HistoryNote* note,
                               std::uint64_t delta) {
  const std::uint32_t stack = stackNumber(event.stack), label = labelNumber(event.label);
  const std::uint32_t pool = poolNumber(event.pool);
  lines_.failed(event.bytes, streamNumber(event.stream), delta, {0, stack, label, pool},
                note && note->report ? factsOf(*note->report) : "");
}

// ---- Definitions --------------------------------------------------------------------------------

RecordingText::Frame& RecordingText::frameOf(std::uintptr_t word) {
  const auto [at, fresh] = frames_.try_emplace(word);
  if (fresh) {
    at->second.frame = names_->frameOf(word);
    at->second.own = !names_->settings.gatherer && isOwnFunction(at->second.frame);
  }
  return at->second;
}

std::uint32_t RecordingText::frameNumber(std::uintptr_t word) {
  Frame& frame = frameOf(word);
  if (frame.number != 0) return frame.number;
  lines_.frame(frame.frame.function, frame.frame.file, frame.frame.line);
  return frame.number = ++frames_written_;
}

// Without Cistern's own frames, where they are innermost.
std::uint32_t RecordingText::stackNumber(std::uint32_t stack) {
  if (stack == 0) return 0;
  if (const auto known = events_stacks_.find(stack); known != events_stacks_.end())
    return known->second;
  std::uint32_t inner = stack;
  for (StackTree::Node node = names_->stacks.node(inner); frameOf(node.value).own;) {
    inner = node.parent;
    if (inner == 0) break;
    node = names_->stacks.node(inner);
  }
  return events_stacks_[stack] = wholeStackNumber(inner);
}

// Callers first. A stack has few frames, and each is written once.
std::uint32_t RecordingText::wholeStackNumber(std::uint32_t stack) {
  if (stack == 0) return 0;
  if (const auto known = stacks_.find(stack); known != stacks_.end()) return known->second;
  const StackTree::Node node = names_->stacks.node(stack);
  const std::uint32_t parent = wholeStackNumber(node.parent);
  const std::uint32_t frame = frameNumber(node.value);
  lines_.stack(parent, frame);
  return stacks_[stack] = ++stacks_written_;
}

std::uint32_t RecordingText::labelNumber(std::uint32_t label) {
  if (label == 0) return 0;
  if (const auto known = labels_.find(label); known != labels_.end()) return known->second;
  const Labels::Label one = Labels::label(label);
  const std::uint32_t parent = labelNumber(one.parent);
  lines_.label(parent, one.value);
  const auto number = std::uint32_t(labels_.size() + 1);
  return labels_[label] = number;
}

std::uint32_t RecordingText::poolNumber(std::uint32_t pool) {
  if (pool == 0) return 0;
  if (const auto known = pool_numbers_.find(pool); known != pool_numbers_.end())
    return known->second;
  const MempoolId_t id = pools_[pool];
  lines_.pool(id.uuid, id.uid);
  const auto number = std::uint32_t(pool_numbers_.size() + 1);
  return pool_numbers_[pool] = number;
}

std::uint32_t RecordingText::streamNumber(Stream stream) {
  constexpr std::size_t kMost = 1'000'000;
  const std::size_t next = std::min(streams_.size(), kMost);
  return streams_.try_emplace(stream, std::uint32_t(next)).first->second;
}

}  // namespace cistern
