// A PyTorch memory snapshot as a trace. PyTorch records a free twice: free_requested, when the
// program lets go, and free_completed, when no queued work uses the memory any more. A trace holds
// the program's actions, so the first counts. The second counts only if the first is missing.
#include <algorithm>
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
std::vector<SnapshotBlock> blocksFromBefore(const Snapshot& snapshot) {
  std::vector<SnapshotBlock> before;
  AddressSet seen;
  for (const SnapshotEvent& event : snapshot.events) {
    const bool first = seen.insert(event.block.address).second;
    if (first && event.action != SnapshotAction::kAlloc) before.push_back(event.block);
  }
  for (const SnapshotBlock& block : snapshot.live_blocks) {
    if (seen.insert(block.address).second) before.push_back(block);
  }
  std::sort(before.begin(), before.end(),
            [](const SnapshotBlock& a, const SnapshotBlock& b) { return a.address < b.address; });
  return before;
}

class PytorchReader final : public ErrorSite {
 public:
  PytorchReader(const Snapshot& snapshot, const std::string& file)
      : snapshot_(snapshot), file_(file), builder_(*this) {}

  Trace read() {
    if (!snapshot_.note.empty()) builder_.note(snapshot_.note);
    for (const SnapshotBlock& block : blocksFromBefore(snapshot_)) allocate(block);
    for (const SnapshotEvent& event : snapshot_.events) replay(event);
    return builder_.finish();
  }

  [[noreturn]] void fail(const std::string& what) const override {
    throw TraceError(file_, placeOf(event_) + ": " + what);
  }

 private:
  std::string placeOf(const SnapshotEvent* event) const {
    return event ? fmt::format("device_traces[{}][{}]", snapshot_.device, event->index)
                 : "a block from before the record";
  }

  void replay(const SnapshotEvent& event) {
    event_ = &event;
    const std::uint64_t address = event.block.address;
    switch (event.action) {
      case SnapshotAction::kAlloc:
        allocate(event.block);
        requested_.erase(address);
        return stamp(event.time_us);
      case SnapshotAction::kFreeRequested:
        requested_.insert(address);
        return free(event);
      case SnapshotAction::kFreeCompleted:
        if (requested_.erase(address) == 0) free(event);
        return;
    }
  }

  void allocate(const SnapshotBlock& block) {
    const auto before = live_.put(block.address, builder_.allocate(block.bytes, block.stream));
    if (before) {
      fail(fmt::format("address 0x{:x} is allocated while {} lives there", block.address,
                       placeOf(origins_[*before])));
    }
    origins_.push_back(event_);
  }

  void free(const SnapshotEvent& event) {
    const auto allocation = live_.take(event.block.address);
    if (!allocation) fail(fmt::format("address 0x{:x} is freed twice", event.block.address));
    builder_.free(*allocation);
    stamp(event.time_us);
  }

  // Threads race to the record, so a time may lie a little before the one above it.
  void stamp(std::int64_t time_us) {
    const std::int64_t last = last_time_us_.value_or(time_us);
    last_time_us_ = std::max(last, time_us);
    builder_.setDelta(static_cast<std::uint64_t>(*last_time_us_) -
                      static_cast<std::uint64_t>(last));
  }

  const Snapshot& snapshot_;
  const std::string& file_;
  TraceBuilder builder_;
  LiveAddresses live_;
  std::vector<const SnapshotEvent*> origins_;  // by allocation; null for those from before
  AddressSet requested_;                       // freed by the program, not yet completed
  std::optional<std::int64_t> last_time_us_;   // the latest so far; none before the first event
  const SnapshotEvent* event_ = nullptr;       // the one being replayed
};

}  // namespace

Trace readPytorch(std::string_view content, const std::string& file) {
  const Snapshot snapshot = readSnapshot(unpickle(content, file), file);
  return PytorchReader(snapshot, file).read();
}

}  // namespace cistern::trace
