// Holds keep memory in place, even if no block lies in it: for a graph that may be replayed, for
// other processes, and for a program that has told others which memory lies where. The backings
// (backing/, pages/) count them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "cistern/types.hpp"

namespace cistern {

/// [from, to) of a device's addresses.
struct AddressRange {
  Address from = 0, to = 0;
};

struct HeapSegment;
namespace pages {
struct Mapping;
}

/// How many graphs' footprints, how many exports, and how many holds of the program's keep a piece
/// of memory.
struct HoldCounts {
  std::uint32_t graphs = 0, exports = 0, fixed = 0;
  using Kind = std::uint32_t HoldCounts::*;
  bool any() const { return graphs + exports + fixed != 0; }
  bool operator==(const HoldCounts&) const = default;
};

/// Memory that one holder keeps. Each segment, or mapping of a page, is in it once.
struct HeldMemory {
  std::vector<pages::Mapping*> mappings;
  std::vector<HeapSegment*> segments;
};

/// A graph's hold on addresses: its replays reach memory through them. While the pool sleeps, no
/// memory is there, and the graph cannot be launched. A page that it reaches may also be mapped
/// elsewhere in its pool, and hold blocks there.
struct Footprint : HeldMemory {
  static constexpr HoldCounts::Kind kKind = &HoldCounts::graphs;
  std::vector<std::shared_ptr<void>> graphs;  ///< keeps alive what child graphs hold
  /// The places where blocks of the capture were in use at its end. Each replay writes there what
  /// the program may read, also if it has freed the blocks since. The rest is scratch.
  std::vector<AddressRange> results;
  bool all_results = false;  ///< the host had no memory for the list: all may be results
};

/// An export's hold on the memory of one block: other processes, or devices, have it mapped.
struct ExportHold : HeldMemory {
  static constexpr HoldCounts::Kind kKind = &HoldCounts::exports;
};

/// The program's own hold: what lies behind these addresses stays, whatever is freed and allocated.
struct FixedHold : HeldMemory {
  static constexpr HoldCounts::Kind kKind = &HoldCounts::fixed;
};

/// The number of a capture, or of a part of one: the body of a conditional node. It marks the
/// capture's blocks, and tells which memory belongs to the capture's footprint. It is unique among
/// captures that overlap. It is never 0 or Request::kLent.
inline std::uint32_t nextCaptureNumber() {
  static std::atomic<std::uint32_t> next{1};
  const std::uint32_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number != 0 && number != UINT32_MAX ? number : nextCaptureNumber();
}

}  // namespace cistern
