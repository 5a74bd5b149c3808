// The parts of a PyTorch memory snapshot that make traces: each device's recorded calls and the
// blocks that were live at its end.
#pragma once

#include <cstdint>
#include <optional>
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

/// One GPU's part of a snapshot.
struct DeviceHistory {
  std::uint32_t device = 0;
  std::vector<SnapshotEvent> events;       ///< in order
  std::vector<SnapshotBlock> live_blocks;  ///< when the snapshot was taken
};

struct Snapshot {
  std::vector<DeviceHistory> devices;  ///< those with events, or the chosen one; by number
  bool of_several = false;             ///< several have events
  std::vector<std::string> left_out;   ///< for people: GPUs with live blocks and no events
};

/// "cuda:1", as PyTorch calls a GPU.
std::string gpuName(std::uint32_t device);

/// Picks the snapshot out of the document. `gpu` chooses a GPU. Throws TraceError naming the entry
/// that is not as PyTorch writes it. Throws it also if there are no events, or none of `gpu`.
Snapshot readSnapshot(const PickleDocument& document, const std::string& file,
                      std::optional<std::uint32_t> gpu);

}  // namespace cistern::trace
