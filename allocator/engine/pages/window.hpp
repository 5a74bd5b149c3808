// A window is a placement candidate: a place in a heap where a request could go once memory has
// been brought there. It is a run of free blocks and holes that is large enough.
#pragma once

#include <optional>
#include <unordered_set>

#include "allocator/engine/pages/free_page_scan.hpp"

namespace cistern::pages {

/// [from, to) of a range, in places. Free blocks lie in it whole, except that the last may be cut
/// at the end of a page, and the first where a given place is. A hole may be in it in part, by
/// units. Each mapping in its holes is stale, and lies wholly inside the window.
struct Window {
  PageRange* range = nullptr;
  Block* first = nullptr;  ///< the free block or hole that `from` lies in
  Address from = 0;
  Address to = 0;
  std::uint32_t units_to_map = 0;  ///< without a mapping
  std::uint32_t revivals = 0;      ///< stale mappings whose page lies wholly free elsewhere
  std::optional<Address> at{};     ///< where in it the block shall begin; none: as low as can be

  /// The fewest units to map first, then the fewest revivals, then the lowest address.
  bool betterThan(const Window& other) const {
    if (units_to_map != other.units_to_map) return units_to_map < other.units_to_map;
    if (revivals != other.revivals && !without(Mechanism::kFewestRevivals))
      return revivals < other.revivals;
    return from < other.from;
  }
};

/// The pages that may come back to stale mappings of a heap's: its own, and those of the device in
/// the heap beside it (overflow). Both scans were made under the same hold of the heaps' locks.
struct PagesInReach {
  const FreePageScan* own = nullptr;
  const FreePageScan* beside = nullptr;
  /// Pages that lie free, and count as if the device had them back: for the report on a request
  /// that is refused.
  const std::unordered_set<const PhysicalPage*>* gone = nullptr;

  bool mayMove(const PhysicalPage& page) const {
    if (own != nullptr && own->mayMove(page)) return true;
    return beside != nullptr && page.kind == MemoryKind::kPages && beside->mayMove(page);
  }
  /// Whether a unit with that mapping, or null, has to be mapped.
  bool lacks(const Mapping* mapping) const {
    return mapping == nullptr || (gone != nullptr && isGone(*mapping));
  }
  [[gnu::cold, gnu::noinline]] bool isGone(const Mapping& mapping) const {
    return gone->contains(mapping.page);
  }
};

/// The window for a request that takes the least mapping. Windows with a stale mapping whose page
/// is in use elsewhere are passed over. `only`: considers just the window at that range's end,
/// where pages of any size fit. None when no run of free blocks and holes is large enough. `last`:
/// the last number that was given (State::number).
std::optional<Window> bestWindow(Heap& heap, const Request& request, const PagesInReach& pages,
                                 std::uint64_t& last, const PageRange* only = nullptr)
    CISTERN_REQUIRES(heap.mutex());
/// The window for the block to begin at that place, if it takes no mapping; else none. Pre: the
/// heap has placed a block there.
std::optional<Window> windowAt(Heap& heap, const Request& request, const PagesInReach& pages,
                               std::uint64_t& last, Address at) CISTERN_REQUIRES(heap.mutex());

}  // namespace cistern::pages
