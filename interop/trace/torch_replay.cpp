#include "interop/trace/torch_replay.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "interop/trace/hash.hpp"
#include "interop/trace/live_addresses.hpp"

namespace cistern::trace {
namespace {

using AddressSet = std::unordered_set<std::uint64_t, SeededHash>;

SnapshotBlock blockOf(const SnapshotEntry& entry) {
  return {entry.address, entry.bytes, entry.stream, entry.stack, entry.label, entry.pool};
}

// The record is a ring that forgets its oldest calls, or was switched on late. Blocks that were
// live before it are those freed in it without an allocation, and those live at the end that it
// never mentions. They are sorted by address, as their true order is not known. Nobody recorded who
// had allocated the first of these.
std::vector<SnapshotBlock> blocksFromBefore(const DeviceHistory& history) {
  std::vector<SnapshotBlock> before;
  AddressSet seen;
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

class Replay {
 public:
  Replay(HistorySite& site, HistorySink& sink) : site_(site), sink_(sink) {}

  void run(DeviceHistory& history) {
    for (const SnapshotBlock& block : blocksFromBefore(history)) allocate(block);
    sink_.began();
    for (std::uint32_t i = 0; !history.entries.empty(); ++i) {
      site_.entry = i;
      annotate(history.entries.front().time_us);
      take(history.entries.front());
      history.entries.pop_front();
    }
    annotate(std::numeric_limits<std::int64_t>::max());
    endOtherUses();
  }

 private:
  /// A free that is not completed yet.
  struct Requested {
    std::uint64_t allocation = 0;
    std::uint64_t call = 0;  ///< which of the program's calls it was
  };

  void annotate(std::int64_t until_us) {
    while (const auto time_us = sink_.annotate(until_us)) stamp(*time_us);
  }

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
        if (sink_.other(entry, site_.entry)) stamp(entry.time_us);
    }
  }

  void complete(const SnapshotEntry& entry) {
    const auto found = requested_.find(entry.address);
    if (found == requested_.end()) return static_cast<void>(free(entry));
    const Requested requested = found->second;
    requested_.erase(found);
    if (requested.call + 1 == calls_) return;
    sink_.endUses(requested.allocation);
    stamp(entry.time_us);
  }

  // Blocks that still wait when the record ends are used until then.
  void endOtherUses() {
    lacks_completed_ = lacks_completed_ || (!has_completed_ && !requested_.empty());
    if (!lacks_completed_) sink_.setStreamUses(StreamUses::kRecorded);
    if (lacks_completed_ && sink_.streams() > 1) sink_.setStreamUses(StreamUses::kMissing);
    if (!has_completed_) return;
    std::vector<std::uint64_t> waiting;
    for (const auto& [address, requested] : requested_) waiting.push_back(requested.allocation);
    std::sort(waiting.begin(), waiting.end());
    for (const std::uint64_t allocation : waiting) sink_.endUses(allocation);
  }

  void allocate(const SnapshotBlock& block) {
    sink_.allocate(block);
    const auto before = live_.put(block.address, allocations_++);
    if (before) {
      site_.fail(fmt::format("address 0x{:x} is allocated while {} lives there", block.address,
                             site_.placeOf(origins_[*before])));
    }
    origins_.push_back(site_.entry);
  }

  std::uint64_t free(const SnapshotEntry& entry) {
    const auto allocation = live_.take(entry.address);
    if (!allocation) site_.fail(fmt::format("address 0x{:x} is freed twice", entry.address));
    sink_.free(*allocation);
    stamp(entry.time_us);
    return *allocation;
  }

  // Threads race to the record, so a time may lie a little before the one above it.
  void stamp(std::int64_t time_us) {
    if (time_us == SnapshotEntry::kNoTime) return sink_.elapsed(0);
    const std::int64_t last = last_time_us_.value_or(time_us);
    last_time_us_ = std::max(last, time_us);
    sink_.elapsed(static_cast<std::uint64_t>(*last_time_us_) - static_cast<std::uint64_t>(last));
  }

  HistorySite& site_;
  HistorySink& sink_;
  LiveAddresses live_;
  std::uint64_t allocations_ = 0;
  std::vector<std::uint32_t> origins_;                                  // by allocation: its entry
  std::unordered_map<std::uint64_t, Requested, SeededHash> requested_;  // by address
  std::uint64_t calls_ = 0;                                             // so far
  bool has_completed_ = false;                // the record has free_completed
  bool lacks_completed_ = false;              // and one that it must have had is not there
  std::optional<std::int64_t> last_time_us_;  // the latest so far; none before the first event
};

}  // namespace

std::string HistorySite::placeOf(std::uint32_t at) const {
  return at == kBefore ? "a block from before the record"
                       : fmt::format("device_traces[{}][{}]", device_, at);
}

void HistorySite::fail(const std::string& what) const {
  throw TraceError(file_, placeOf(entry) + ": " + what);
}

void replayHistory(DeviceHistory& history, HistorySite& site, HistorySink& sink) {
  Replay(site, sink).run(history);
}

}  // namespace cistern::trace
