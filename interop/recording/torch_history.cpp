#include "interop/recording/torch_history.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "interop/recording/live_addresses.hpp"
#include "interop/recording/recording_builder.hpp"
#include "interop/recording/reserved_before.hpp"
#include "interop/trace/hash.hpp"

namespace cistern::recording {
namespace {

using trace::DeviceHistory;
using trace::SnapshotAction;
using trace::SnapshotAnnotation;
using trace::SnapshotBlock;
using trace::SnapshotEntry;
using trace::SnapshotTables;

/// Which entry is being replayed.
class HistorySite final : public trace::ErrorSite {
 public:
  /// `file` must outlive it.
  HistorySite(const std::string& file, std::uint32_t device) : file_(file), device_(device) {}
  static constexpr std::uint32_t kBefore = ~std::uint32_t{0};

  /// The place of an entry, or of a block from before the record.
  std::string placeOf(std::uint32_t at) const {
    return at == kBefore ? "a block from before the record"
                         : fmt::format("device_traces[{}][{}]", device_, at);
  }
  [[noreturn]] void fail(const std::string& what) const override {
    throw trace::TraceError(file_, placeOf(entry) + ": " + what);
  }

  std::uint32_t entry = kBefore;

 private:
  const std::string& file_;
  const std::uint32_t device_;
};

SnapshotBlock blockOf(const SnapshotEntry& entry) {
  return {entry.address, entry.bytes, entry.stream, entry.stack, entry.label, entry.pool};
}

// The record is a ring that forgets its oldest calls, or was switched on late. Blocks that were
// live before it are those freed in it without an allocation, and those live at the end that it
// never mentions. They are sorted by address, as their true order is not known. Nobody recorded who
// had allocated the first of these.
std::vector<SnapshotBlock> blocksFromBefore(const DeviceHistory& history) {
  std::vector<SnapshotBlock> before;
  std::unordered_set<std::uint64_t, trace::SeededHash> seen;
  for (const SnapshotEntry& entry : history.entries) {
    if (!entry.isCall() || !seen.insert(entry.address).second) continue;
    if (entry.action() == SnapshotAction::kAlloc) continue;
    SnapshotBlock& block = before.emplace_back(blockOf(entry));
    block.stack = block.label = 0;
  }
  for (const SnapshotBlock& block : history.live_blocks) {
    if (seen.insert(block.address).second) before.push_back(block);
  }
  std::sort(before.begin(), before.end(),
            [](const SnapshotBlock& a, const SnapshotBlock& b) { return a.address < b.address; });
  return before;
}

// Annotations that the record cannot place are passed over: it may have forgotten what came first,
// or know no times.
std::size_t firstAnnotation(const DeviceHistory& history) {
  const std::vector<SnapshotAnnotation>& all = history.annotations;
  const bool has_times = std::any_of(history.entries.begin(), history.entries.end(),
                                     [](const SnapshotEntry& entry) { return entry.time_us != 0; });
  if (!has_times) return all.size();
  const std::int64_t begin_us = history.entries.front().time_us;
  const auto first = std::find_if(
      all.begin(), all.end(),
      [&](const SnapshotAnnotation& annotation) { return annotation.time_us >= begin_us; });
  return std::size_t(first - all.begin());
}

class HistoryReader {
 public:
  HistoryReader(DeviceHistory& history, const SnapshotTables& tables, const std::string& file,
                trace::Detail detail)
      : history_(history),
        tables_(tables),
        site_(file, history.device),
        builder_(site_, detail),
        next_annotation_(firstAnnotation(history)) {
    if (detail == trace::Detail::kAll) reserved_.emplace(history);
  }

  Recording read() {
    begin();
    for (std::uint32_t i = 0; !history_.entries.empty(); ++i) {
      site_.entry = i;
      annotate(history_.entries.front().time_us);
      take(history_.entries.front());
      history_.entries.pop_front();
    }
    annotate(std::numeric_limits<std::int64_t>::max());
    endOtherUses();
    builder_.setSource(Source::kPytorch);
    builder_.setDevice(trace::gpuName(history_.device));
    return builder_.finish();
  }

 private:
  /// A free that is not completed yet.
  struct Requested {
    std::uint64_t allocation = 0;
    std::uint64_t call = 0;  ///< which of the program's calls it was
  };

  void begin() {
    addTables();
    const std::vector<SnapshotBlock> before = blocksFromBefore(history_);
    const std::size_t reserved = reserved_ ? reserved_->atStart().size() : 0;
    builder_.expectEvents(history_.entries.size() + before.size() + reserved +
                          history_.annotations.size());
    for (std::size_t i = 0; i < reserved; ++i) {
      const Reserved& range = reserved_->atStart()[i];
      builder_.memory(range.expandable ? EventKind::kMap : EventKind::kReserve, range.begin,
                      range.end - range.begin, tables_.streams[range.stream], range.pool);
    }
    for (const SnapshotBlock& block : before) allocate(block);
    builder_.setFirstRecorded(builder_.soFar().events.size());
  }

  // The tables' numbers are those of the recording, except that of a full table's row.
  void addTables() {
    for (const trace::SnapshotFrame& frame : tables_.frames) {
      builder_.addFrame({frame.function, frame.file, frame.line});
    }
    for (std::size_t i = 1; i < tables_.stacks.size(); ++i) {
      builder_.addStack(tables_.stacks[i].parent, tables_.stacks[i].frame);
    }
    for (std::size_t i = 1; i < tables_.labels.size(); ++i) {
      builder_.addLabel(tables_.labels[i].parent, tables_.labels[i].name);
    }
    for (std::size_t i = 1; i < tables_.pools.size(); ++i) {
      builder_.addPool({tables_.pools[i].first, tables_.pools[i].second});
    }
  }

  // ---- Entries ----

  void take(const SnapshotEntry& entry) {
    if (entry.isCall()) ++calls_;
    switch (entry.action()) {
      case SnapshotAction::kAlloc:
        allocate(blockOf(entry));
        if (!requested_.empty() && requested_.erase(entry.address) > 0) lacks_completed_ = true;
        return stamp(entry.time_us);
      case SnapshotAction::kFreeRequested:
        requested_[entry.address] = {free(entry), calls_};
        return;
      case SnapshotAction::kFreeCompleted:
        has_completed_ = true;
        return complete(entry);
      default:
        if (addOther(entry)) stamp(entry.time_us);
    }
  }

  void complete(const SnapshotEntry& entry) {
    const auto found = requested_.find(entry.address);
    if (found == requested_.end()) return static_cast<void>(free(entry));
    const Requested requested = found->second;
    requested_.erase(found);
    if (requested.call + 1 == calls_) return;
    builder_.endUses(requested.allocation);
    stamp(entry.time_us);
  }

  // Blocks that still wait when the record ends are used until then.
  void endOtherUses() {
    lacks_completed_ = lacks_completed_ || (!has_completed_ && !requested_.empty());
    if (!lacks_completed_) builder_.setStreamUses(StreamUses::kRecorded);
    if (lacks_completed_ && builder_.streams() > 1) builder_.setStreamUses(StreamUses::kMissing);
    if (!has_completed_) return;
    std::vector<std::uint64_t> waiting;
    for (const auto& [address, requested] : requested_) waiting.push_back(requested.allocation);
    std::sort(waiting.begin(), waiting.end());
    for (const std::uint64_t allocation : waiting) builder_.endUses(allocation);
  }

  void allocate(const SnapshotBlock& block) {
    const std::uint32_t pool =
        block.pool > 0 || !reserved_ ? block.pool : reserved_->poolAt(block.address);
    builder_.allocate(block.bytes, tables_.streams[block.stream],
                      {block.address, block.stack, block.label, pool});
    const auto before = live_.put(block.address, origins_.size());
    if (before) {
      site_.fail(fmt::format("address 0x{:x} is allocated while {} lives there", block.address,
                             site_.placeOf(origins_[*before])));
    }
    origins_.push_back(site_.entry);
  }

  std::uint64_t free(const SnapshotEntry& entry) {
    const auto allocation = live_.take(entry.address);
    if (!allocation) site_.fail(fmt::format("address 0x{:x} is freed twice", entry.address));
    builder_.free(*allocation);
    stamp(entry.time_us);
    return *allocation;
  }

  // ---- Entries that are no calls of the program's: whether the recording has an event of one ----

  bool addOther(const SnapshotEntry& entry) {
    switch (entry.action()) {
      case SnapshotAction::kSegmentAlloc:
        return addMemory(EventKind::kReserve, entry);
      case SnapshotAction::kSegmentFree:
        return addMemory(EventKind::kRelease, entry);
      case SnapshotAction::kSegmentMap:
        return addMemory(EventKind::kMap, entry);
      case SnapshotAction::kSegmentUnmap:
        return addMemory(EventKind::kUnmap, entry);
      case SnapshotAction::kOom:
        return addFailure(entry);
      case SnapshotAction::kSnapshot:
        return builder_.mark("a snapshot was taken");
      case SnapshotAction::kAnnotate:
        return builder_.mark(tables_.labels[entry.label].name);
      default:
        return false;
    }
  }

  bool addMemory(EventKind kind, const SnapshotEntry& entry) {
    const std::uint32_t pool = reserved_ ? reserved_->take(entry, site_.entry) : 0;
    const bool kept =
        builder_.memory(kind, entry.address, entry.bytes, tables_.streams[entry.stream], pool);
    if (kept) builder_.setPlace(entry.address, entry.stack, entry.label, pool);
    return kept;
  }

  // PyTorch's entry has the request as it was rounded for its own blocks.
  bool addFailure(const SnapshotEntry& entry) {
    Failure failure;
    failure.requested = entry.bytes;
    failure.device_free = entry.address;
    return builder_.fail(tables_.streams[entry.stream], {0, entry.stack, entry.label, entry.pool},
                         std::move(failure));
  }

  void annotate(std::int64_t until_us) {
    const std::vector<SnapshotAnnotation>& all = history_.annotations;
    for (; next_annotation_ < all.size() && all[next_annotation_].time_us <= until_us;
         ++next_annotation_) {
      builder_.mark(all[next_annotation_].name);
      stamp(all[next_annotation_].time_us);
    }
  }

  // Threads race to the record, so a time may lie a little before the one above it.
  void stamp(std::int64_t time_us) {
    if (time_us == SnapshotEntry::kNoTime) return;
    const std::int64_t last = last_time_us_.value_or(time_us);
    last_time_us_ = std::max(last, time_us);
    builder_.setDelta(static_cast<std::uint64_t>(*last_time_us_) -
                      static_cast<std::uint64_t>(last));
  }

  DeviceHistory& history_;
  const SnapshotTables& tables_;
  HistorySite site_;
  RecordingBuilder builder_;
  std::optional<ReservedBefore> reserved_;  // of kAll
  std::size_t next_annotation_;
  LiveAddresses live_;
  std::vector<std::uint32_t> origins_;  // by allocation: its entry
  std::unordered_map<std::uint64_t, Requested, trace::SeededHash> requested_;  // by address
  std::uint64_t calls_ = 0;                                                    // so far
  bool has_completed_ = false;                // the record has free_completed
  bool lacks_completed_ = false;              // and one that it must have had is not there
  std::optional<std::int64_t> last_time_us_;  // the latest so far; none before the first event
};

}  // namespace

Recording recordingOf(DeviceHistory& history, const SnapshotTables& tables, const std::string& file,
                      trace::Detail detail) {
  return HistoryReader(history, tables, file, detail).read();
}

}  // namespace cistern::recording
