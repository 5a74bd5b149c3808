// The parts of a PyTorch memory snapshot that make a trace: one device's recorded calls and the
// blocks that were live at its end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "interop/trace/pickle_document.hpp"

namespace cistern::trace {

enum class SnapshotAction : std::uint8_t { kAlloc, kFreeRequested, kFreeCompleted };

/// A piece of memory as PyTorch names it.
struct SnapshotBlock {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  ///< as the program asked for them
  std::uint64_t stream = 0;
};

struct SnapshotEvent {
  SnapshotBlock block;
  std::int64_t time_us = 0;  ///< 0 in snapshots without times
  std::size_t index = 0;     ///< in the device's list, for complaints
  SnapshotAction action = SnapshotAction::kAlloc;
};

struct Snapshot {
  std::size_t device = 0;                  ///< the one with the most recorded calls
  std::string note;                        ///< what of other devices was left out; empty if nothing
  std::vector<SnapshotEvent> events;       ///< of `device`, in order
  std::vector<SnapshotBlock> live_blocks;  ///< of `device`, when the snapshot was taken
};

/// Picks the snapshot out of the document. Throws TraceError naming the entry that is not as
/// PyTorch writes it.
Snapshot readSnapshot(const PickleDocument& document, const std::string& file);

}  // namespace cistern::trace
