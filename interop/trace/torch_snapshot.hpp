// The parts of a PyTorch memory snapshot that make recordings: each device's recorded
// events, and the segments and blocks that were there at its end. Read next: torch_entries.hpp,
// which takes the events out of the pickle. recording/torch_history.hpp brings them in order.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "interop/trace/byte_source.hpp"
#include "interop/trace/read_limits.hpp"
#include "interop/trace/torch_tables.hpp"

namespace cistern::trace {

enum class SnapshotAction : std::uint8_t {
  kOther,  ///< one that is passed over
  kAlloc,
  kFreeRequested,
  kFreeCompleted,
  kSegmentAlloc,
  kSegmentFree,
  kSegmentMap,
  kSegmentUnmap,
  kOom,
  kSnapshot,
  kAnnotate,
};

/// An event as PyTorch recorded it, with numbers of SnapshotTables. Ten million are 400 MB.
struct SnapshotEntry {
  std::uint64_t address = 0;  ///< of kOom: the device's free bytes
  std::uint64_t bytes = 0;    ///< as the program asked for them
  std::int64_t time_us = 0;   ///< 0 in snapshots without times; kNoTime where it is odd
  std::uint32_t stream = 0;
  std::uint32_t stack = 0;
  std::uint32_t label : 28 = 0;
  std::uint32_t action_number : 4 = 0;
  std::uint32_t pool = 0;  ///< 0 also where the snapshot has no pools of entries

  static constexpr std::int64_t kNoTime = -1;

  SnapshotAction action() const { return static_cast<SnapshotAction>(action_number); }
  /// Whether it is the program's own.
  bool isCall() const {
    return action() >= SnapshotAction::kAlloc && action() <= SnapshotAction::kFreeCompleted;
  }
};
static_assert(sizeof(SnapshotEntry) <= 40);

/// A piece of memory as PyTorch names it.
struct SnapshotBlock {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  ///< as the program asked for them
  std::uint32_t stream = 0;
  std::uint32_t stack = 0;
  std::uint32_t label = 0;
  std::uint32_t pool = 0;
};

struct SnapshotSegment {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint32_t stream = 0;
  std::uint32_t pool = 0;
  bool expandable = false;  ///< pages are mapped and unmapped in it
};

/// A moment that the program or its profiler has named.
struct SnapshotAnnotation {
  std::int64_t time_us = 0;
  std::string name;
};

/// One GPU's part of a snapshot.
struct DeviceHistory {
  std::uint32_t device = 0;
  std::deque<SnapshotEntry> entries;       ///< in order; all, so that a place in it is PyTorch's
  std::uint64_t calls = 0;                 ///< allocations, and frees that the program requested
  std::vector<SnapshotBlock> live_blocks;  ///< when the snapshot was taken
  std::vector<SnapshotSegment> segments;   ///< then, too
  std::vector<SnapshotAnnotation> annotations;  ///< the first 2^16, in order of time; of kAll alone
};

struct Snapshot {
  SnapshotTables tables;
  std::vector<DeviceHistory> devices;  ///< by number; each has entries, blocks or segments
  std::vector<std::string> notes;      ///< for people: what is odd in the file
};

/// "cuda:1", as PyTorch calls a GPU.
std::string gpuName(std::uint32_t device);

/// For messages about a snapshot without events.
inline constexpr const char* kHowToRecordPytorch =
    "call torch.cuda.memory._record_memory_history(context=None, max_entries=10_000_000) before "
    "the "
    "steps, and _dump_snapshot after them";

/// Reads a pickle. With Detail::kCalls stacks, labels and pools stay 0. Throws TraceError naming
/// the entry that is not as PyTorch writes it, or the offset where the pickle is malformed.
Snapshot readSnapshot(ByteSource& source, const std::string& file, Detail detail);

}  // namespace cistern::trace
