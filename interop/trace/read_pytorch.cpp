// A PyTorch memory snapshot as a trace. PyTorch records a free twice: free_requested, when the
// program lets go, and free_completed, when no other stream uses the memory any more. The first is
// the program's free, and so is the second where the first is missing. Otherwise the second ends
// the block's uses. PyTorch writes it right behind the first where it waits for no other stream;
// such a free is in stream order, and needs no end of uses.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "interop/trace/builder.hpp"
#include "interop/trace/live_addresses.hpp"
#include "interop/trace/readers.hpp"
#include "interop/trace/torch_snapshot.hpp"
#include "interop/trace/unpickle.hpp"

namespace cistern::trace {
namespace {

using AddressSet = std::unordered_set<std::uint64_t, SeededHash>;

// The record is a ring that forgets its oldest calls, or was switched on late. Blocks that were
// live before it are those freed in it without an allocation, and those live at the end that it
// never mentions. They are sorted by address, as their true order is not known.
std::vector<SnapshotBlock> blocksFromBefore(const DeviceHistory& history) {
  std::vector<SnapshotBlock> before;
  AddressSet seen;
  for (const SnapshotEvent& event : history.events) {
    const bool first = seen.insert(event.block.address).second;
    if (first && event.action != SnapshotAction::kAlloc) before.push_back(event.block);
  }
  for (const SnapshotBlock& block : history.live_blocks) {
    if (seen.insert(block.address).second) before.push_back(block);
  }
  std::sort(before.begin(), before.end(),
            [](const SnapshotBlock& a, const SnapshotBlock& b) { return a.address < b.address; });
  return before;
}

class PytorchReader final : public ErrorSite {
 public:
  PytorchReader(const DeviceHistory& history, const std::string& file)
      : history_(history), file_(file), builder_(*this) {}

  Trace read() {
    for (const SnapshotBlock& block : blocksFromBefore(history_)) allocate(block);
    for (const SnapshotEvent& event : history_.events) replay(event);
    endOtherUses();
    return builder_.finish();
  }

  [[noreturn]] void fail(const std::string& what) const override {
    throw TraceError(file_, placeOf(event_) + ": " + what);
  }

 private:
  std::string placeOf(const SnapshotEvent* event) const {
    return event ? fmt::format("device_traces[{}][{}]", history_.device, event->index)
                 : "a block from before the record";
  }

  void replay(const SnapshotEvent& event) {
    event_ = &event;
    const std::uint64_t address = event.block.address;
    switch (event.action) {
      case SnapshotAction::kAlloc:
        allocate(event.block);
        if (requested_.erase(address) > 0) lacks_completed_ = true;
        return stamp(event.time_us);
      case SnapshotAction::kFreeRequested:
        requested_[address] = {free(event), &event};
        return;
      case SnapshotAction::kFreeCompleted:
        has_completed_ = true;
        return complete(event);
    }
  }

  void complete(const SnapshotEvent& event) {
    const auto found = requested_.find(event.block.address);
    if (found == requested_.end()) return static_cast<void>(free(event));
    const Requested requested = found->second;
    requested_.erase(found);
    if (requested.event + 1 == &event) return;
    builder_.endUses(requested.allocation);
    stamp(event.time_us);
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
    const auto before = live_.put(block.address, builder_.allocate(block.bytes, block.stream));
    if (before) {
      fail(fmt::format("address 0x{:x} is allocated while {} lives there", block.address,
                       placeOf(origins_[*before])));
    }
    origins_.push_back(event_);
  }

  std::uint64_t free(const SnapshotEvent& event) {
    const auto allocation = live_.take(event.block.address);
    if (!allocation) fail(fmt::format("address 0x{:x} is freed twice", event.block.address));
    builder_.free(*allocation);
    stamp(event.time_us);
    return *allocation;
  }

  // Threads race to the record, so a time may lie a little before the one above it.
  void stamp(std::int64_t time_us) {
    const std::int64_t last = last_time_us_.value_or(time_us);
    last_time_us_ = std::max(last, time_us);
    builder_.setDelta(static_cast<std::uint64_t>(*last_time_us_) -
                      static_cast<std::uint64_t>(last));
  }

  /// A free that is not completed yet.
  struct Requested {
    std::uint64_t allocation = 0;
    const SnapshotEvent* event = nullptr;  ///< of history_.events
  };

  const DeviceHistory& history_;
  const std::string& file_;
  TraceBuilder builder_;
  LiveAddresses live_;
  std::vector<const SnapshotEvent*> origins_;  // by allocation; null for those from before
  std::unordered_map<std::uint64_t, Requested, SeededHash> requested_;  // by address
  bool has_completed_ = false;                // the record has free_completed
  bool lacks_completed_ = false;              // and one that it must have had is not there
  std::optional<std::int64_t> last_time_us_;  // the latest so far; none before the first event
  const SnapshotEvent* event_ = nullptr;      // the one being replayed
};

}  // namespace

Recordings readPytorch(std::string_view content, const std::string& file,
                       std::optional<std::uint32_t> gpu) {
  Snapshot snapshot = readSnapshot(unpickle(content, file), file, gpu);
  Recordings read;
  read.of_several = snapshot.of_several;
  read.left_out = std::move(snapshot.left_out);
  for (const DeviceHistory& history : snapshot.devices) {
    read.traces.push_back(PytorchReader(history, file).read());
    read.gpus.push_back(gpuName(history.device));
  }
  return read;
}

}  // namespace cistern::trace
