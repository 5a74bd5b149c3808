// What keeps memory where it is although no block of a program may lie in it: a graph that may be
// replayed, and other processes. The backings (backing/, pages/) count both.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace cistern {

struct HeapSegment;
namespace pages {
struct Mapping;
}

/// A graph's hold on addresses: its replays reach memory through them. Each segment, or mapping of
/// a page, is in it once. A page that a footprint reaches may lie elsewhere in its pool meanwhile.
struct Footprint {
  std::vector<pages::Mapping*> mappings;
  std::vector<HeapSegment*> segments;
  std::vector<std::shared_ptr<void>> graphs;  ///< that became part of it: what they hold
};

/// An export's hold on the memory of one block: other processes, or devices, have it mapped.
struct ExportHold {
  std::vector<pages::Mapping*> mappings;
  std::vector<HeapSegment*> segments;
};

/// The number of a capture, or of a part of one. Its blocks are marked with it, and its footprint
/// is built by it. Unique among those that overlap; never 0, nor Request::kLent.
inline std::uint32_t nextCaptureNumber() {
  static std::atomic<std::uint32_t> next{1};
  const std::uint32_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number != 0 && number != UINT32_MAX ? number : nextCaptureNumber();
}

}  // namespace cistern
