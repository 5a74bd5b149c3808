// Finds the pages of a heap that lie wholly free at this moment, and so could serve elsewhere in
// their pool. All but those that a graph reaches (PhysicalPage::mayLeave) could serve anywhere. A
// page that the program holds in place is not found, nor is any of a pool that it holds.
#pragma once

#include <algorithm>
#include <vector>

#include "allocator/engine/core/pool.hpp"
#include "allocator/engine/pages/page.hpp"

namespace cistern::pages {

/// A picture of one heap, good until its lock is given up. It marks what it finds: a mapping was
/// found free  <=>  found(mapping). Then mapping.found.in is the free block around it, and
/// mapping.last_use says when any part of the page was used last.
class FreePageScan {
 public:
  /// `last`: the last number that was given (State::number). Throws std::bad_alloc. Out of line,
  /// where it has all registers for itself.
  [[gnu::noinline]] FreePageScan(Heap& heap, std::uint64_t& last) CISTERN_REQUIRES(heap.mutex())
      : number_(++last) {
    stampRecent(heap);
    if (heap.pool().isHeld()) return;
    for (SizeKind kind : kSizeKinds) {
      heap.layout(kind).forEachFree(kUnitGranules, [&](Block& block) {
        heap.mutex().assertHeld();
        note(heap, block);
      });
    }
  }

  /// The mappings of wholly free pages, small ones' and large ones'.
  const std::vector<Mapping*>& freeMappings() const { return free_; }
  bool found(const Mapping& mapping) const { return mapping.found.by == number_; }
  /// Whether the page could serve elsewhere in its pool: it lies wholly free where it is now.
  bool mayMove(const PhysicalPage& page) const {
    return page.current != nullptr && found(*page.current);
  }

 private:
  // The heap remembers what was freed since the last scan, and each page remembers the last of its
  // frees. A later piece may have an older epoch, as memory that comes back complete is stamped so.
  void stampRecent(Heap& heap) CISTERN_REQUIRES(heap.mutex()) {
    const Completion& known = heap.completion();
    heap.recentFrees().take([&known](const RecentFrees::Piece& piece) {
      const auto& range = static_cast<const PageRange&>(*piece.in);
      const Address from = range.base + bytesOf(piece.from), to = range.base + bytesOf(piece.to);
      forEachMapping(range, from, to, [&](Mapping& mapping) {
        if (!mapping.isCurrent()) return;
        mapping.last_use = std::max(mapping.last_use, known.epochOf(piece.epoch));
      });
    });
  }
  // Notes the mappings that begin and end inside the block, which knows when the youngest of its
  // parts was freed. A mapping that reaches beyond the block is in the slot beyond, too. It is not
  // read, as that takes long.
  void note(Heap& heap, Block& block) CISTERN_REQUIRES(heap.mutex()) {
    const PageRange& range = rangeOf(block);
    const std::vector<Mapping*>& slots = range.slots;
    std::uint32_t unit = range.unitAt(block.address() + kUnit - 1), end = range.unitAt(block.end());
    while (unit < end && unit > 0 && slots[unit] == slots[unit - 1]) ++unit;
    while (unit < end && end < slots.size() && slots[end] == slots[end - 1]) --end;
    const Completion& known = heap.completion();
    const bool large = range.kind == SizeKind::kLarge && !without(Mechanism::kPageEpochs);
    const std::uint64_t forgotten = known.epochOf(heap.recentFrees().forgotten()),
                        epoch = known.epochOf(block.epoch);
    while (unit < end) {
      Mapping& mapping = *slots[unit];
      unit = mapping.end_unit;
      if (mapping.holds.fixed != 0) continue;
      mapping.found = {number_, &block};
      const std::uint64_t last = large ? std::max(mapping.last_use, forgotten) : UINT64_MAX;
      mapping.last_use = std::min(epoch, last);
      free_.push_back(&mapping);
    }
  }

  const std::uint64_t number_;
  std::vector<Mapping*> free_;
};

}  // namespace cistern::pages
