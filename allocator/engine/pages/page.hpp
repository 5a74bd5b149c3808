// The parts of the pages backing: pages, the mappings through which they are reached, and the
// ranges of addresses that mappings lie in. The backing's lock guards all three. The heap's lock
// guards what a range inherits from HeapSegment, and what the layout says about it.
//
//        range of stream A                                   range of stream B
//   ┌────────┬────────┬────────┬────────┬─ ─ ─ ─        ┌────────┬────────┬─ ─ ─
//   │ mapping 1 │ mapping 2 │ stale  │ empty  │ beyond        │ mapping 4 │ mapping 5 │
//   └───┬────┴───┬────┴───┬────┴────────┴─ ─ ─ ─        └───┬────┴───┬────┴─ ─ ─
//       │        │        └───────────────────────────┐      │        │
//     page P   page Q                                 └── page R    page S
//
// A page's current mapping is where its memory belongs to the heap: blocks lie there, allocated or
// free. A stale mapping is where the page was before it moved: the layout sees a hole there.
//
// A graph holds the mappings that its capture was handed blocks in: its replays reach pages through
// them. An export holds the mappings of its block. A held mapping stays mapped to its page, whether
// it is the current one or not. Meanwhile the page may lie elsewhere in that pool, but only there.
// That is safe, because the graphs of one pool never run at the same time. What the program holds
// (HoldCounts::fixed) stays current, too.
//
//   - A page has at most one current mapping, and any number of stale ones.
//   - Mappings of a range do not overlap. range.slots[u] is the mapping over unit u; null: none.
//   - Between operations: memory of the layout == what the current mappings of its ranges cover.
//   - page.holds == the sums of its mappings'. If a page has holds, it has a current mapping, in
//     the pool of the mappings that are held.
//   - A page that has a current mapping is of a kind that its heap may have:
//     mayHold(heap.memory(), page.kind).
//   - mapping.at_rest  =>  it is its page's home.
//   - mapping.withdrawn  =>  nothing reaches the page through it; if it is current, the page is
//     asleep.
//   - A page that is asleep keeps its mappings, through which nothing is accessible, until its pool
//     wakes. The device may not have the page then (!made), and has unmapped what is not `mapped`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "allocator/engine/ground/holds.hpp"
#include "allocator/engine/ground/limit.hpp"
#include "allocator/engine/heap/heap.hpp"

namespace cistern {
struct SharedPage;
}

namespace cistern::pages {

/// The sizes of pages, and the addresses where they are mapped, are multiples of this.
inline constexpr std::uint64_t kUnit = kPageUnit;
inline constexpr std::uint32_t kUnitGranules = std::uint32_t(kUnit / kGranule);

struct Mapping;

/// One physical allocation of the device.
struct PhysicalPage {
  // The fields that a low water reads of every free page stand together.
  Mapping* current = nullptr;
  std::vector<Mapping*> mappings{};  ///< the current one among them
  std::uint32_t units = 0;           ///< size
  MemoryKind kind = MemoryKind::kPages;
  HoldCounts holds;  ///< the sums of its mappings'
  SizeKind counted_as = SizeKind::kSmall;
  /// A low water of a heap of the default pool has found it free, and its home is there from then
  /// on. No page of a private pool gets one.
  bool has_home = false;
  Heap* counted_by = nullptr;  ///< the heap whose reserved bytes count it; changes under its lock
  Page handle{};
  std::list<PhysicalPage>::iterator self{};
  std::uint64_t considered = 0;  ///< the last window that it was counted for as a revival. A page
                                 ///< may have several stale mappings in one window
  std::weak_ptr<const SharedPage> exported{};  ///< to other processes, while any holds it
  bool asleep = false;                         ///< its pool sleeps, and its memory is away
  /// The device has it. Of pages asleep, these are the ones that it has not taken back, or has made
  /// for a wake that did not come to its end.
  bool made = true;

  /// Whether the page is in no heap. Between misses, a spare page was made for a miss to come, or
  /// is left over: the device did not take it back, or did not unmap it.
  bool spare() const { return current == nullptr; }
  /// The mapping that the page goes to at low water. Pre: it is mapped.
  Mapping& home() const { return *mappings.front(); }
  std::uint64_t bytes() const { return units * kUnit; }
  /// Whether the page may go to another pool, or to the device. This is the one place that says so.
  /// It may not if a graph goes on reaching it, or another process: they do not ask this allocator.
  bool mayLeave() const { return !holds.any(); }
};

/// A growing range of addresses that one heap places blocks of one kind in.
struct PageRange : HeapSegment {
  std::uint64_t reserved_bytes = 0;  ///< of addresses; bytes <= reserved_bytes is in use
  Heap* home = nullptr;
  std::vector<Mapping*> slots;  ///< one per unit of `bytes`
  std::uint32_t touched = 0;    ///< from this unit on there never was a mapping

  Address placeOfUnit(std::uint32_t unit) const { return base + unit * kUnit; }
  Address deviceOfUnit(std::uint32_t unit) const { return device_base + unit * kUnit; }
  std::uint32_t unitAt(Address place) const { return std::uint32_t((place - base) / kUnit); }
  std::uint32_t units() const { return std::uint32_t(slots.size()); }
};

/// One mapping of a page.
struct Mapping {
  /// The last scan that found it free (free_page_scan.hpp).
  struct Found {
    std::uint64_t by = 0;  ///< its number
    Block* in = nullptr;   ///< the free block, while that is the latest scan
  };

  PhysicalPage* page = nullptr;
  PageRange* range = nullptr;
  std::uint32_t unit = 0;      ///< where in the range
  std::uint32_t end_unit = 0;  ///< == unit + page->units
  Found found;
  /// In epochs of range->home. Stale: when the page moved on. Current: as of the scan that found it
  /// free.
  std::uint64_t last_use = 0;
  HoldCounts holds;           ///< footprints, exports, and holds, that it is part of
  std::uint32_t capture = 0;  ///< of the last of these footprints
  bool mapped = true;         ///< the device has mapped it; see PhysicalPage::made
  bool accessible = false;    ///< the device may read and write through it
  bool at_rest = false;       ///< a low water leaves it as it is
  bool withdrawn = false;     ///< it goes once hooks have heard of that; not accessible meanwhile
  std::list<Mapping>::iterator self;

  std::uint32_t units() const { return end_unit - unit; }
  std::uint64_t bytes() const { return units() * kUnit; }
  Address place() const { return range->placeOfUnit(unit); }
  Address placeEnd() const { return range->placeOfUnit(end_unit); }
  Address deviceAddress() const { return range->deviceOfUnit(unit); }
  bool isCurrent() const { return page->current == this; }
  /// Whether blocks have memory there now: they have none while their pool sleeps.
  bool isThere() const { return isCurrent() && !page->asleep; }
  bool isHome() const { return &page->home() == this; }
  /// Whether it may go once its last use is complete.
  bool removable() const { return !isCurrent() && !holds.any() && !withdrawn; }
};

/// The range that a block of a heap backed by pages lies in.
inline PageRange& rangeOf(const Block& block) { return static_cast<PageRange&>(*block.segment); }

/// Calls visit(Mapping&) for each mapping over [from, to) of the range, lowest first. A mapping may
/// lie there in part.
template <class Visit>
void forEachMapping(const PageRange& range, Address from, Address to, Visit visit) {
  const std::uint32_t end = range.unitAt(to + kUnit - 1);
  for (std::uint32_t unit = range.unitAt(from); unit < end;) {
    Mapping* const mapping = range.slots[unit];
    unit = mapping ? mapping->end_unit : unit + 1;
    if (mapping) visit(*mapping);
  }
}

/// The bytes of the block that lie in mappings of which `counts(const Mapping&)` holds.
template <class Counts>
std::uint64_t bytesIn(const Block& block, Counts counts) {
  std::uint64_t bytes = 0;
  forEachMapping(rangeOf(block), block.address(), block.end(), [&](const Mapping& mapping) {
    if (!counts(mapping)) return;
    bytes += std::min(mapping.placeEnd(), block.end()) - std::max(mapping.place(), block.address());
  });
  return bytes;
}

}  // namespace cistern::pages
