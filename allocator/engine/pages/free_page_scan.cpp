#include "allocator/engine/pages/free_page_scan.hpp"

#include <algorithm>

namespace cistern::pages {

FreePageScan::FreePageScan(Heap& heap, std::uint64_t& scans, Whither whither)
    : heap_(heap), number_(++scans), whither_(whither) {
  stampRecent(heap);
  for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
    heap.layout(kind).forEachFree(kUnitGranules, [&](Block& block) {
      heap.mutex().assertHeld();
      note(heap, block);
    });
  }
}

// The heap remembers what was freed since the last scan; each page, the last of it. Two may have
// the epochs the other way round: what comes back complete is stamped with an older one.
void FreePageScan::stampRecent(Heap& heap) {
  const std::uint32_t generation = heap.completion().now().generation;
  heap.recentFrees().take([generation](const RecentFrees::Piece& piece) {
    const auto& range = static_cast<const PageRange&>(*piece.in);
    const std::uint32_t end = (piece.to + kUnitGranules - 1) / kUnitGranules;
    for (std::uint32_t unit = piece.from / kUnitGranules; unit < end;) {
      Mapping* const mapping = range.slots[unit++];
      if (mapping == nullptr) continue;
      unit = mapping->end_unit;
      EpochMark& last = mapping->last_use;
      const bool later = last.generation != generation || last.epoch < piece.epoch;
      if (mapping->isCurrent() && later) last = {piece.epoch, generation};
    }
  });
}

// The mappings that begin and end inside the block.
void FreePageScan::note(Heap& heap, Block& block) {
  const PageRange& range = rangeOf(block);
  const std::uint32_t generation = heap.completion().now().generation;
  const std::uint32_t end = range.unitAt(block.end());
  std::uint32_t unit = range.unitAt(block.address() + kUnit - 1);
  while (unit < end) {
    Mapping& mapping = *range.slots[unit];
    const bool may_go = whither_ == Whither::kWithinPool || mapping.page->mayLeave();
    const bool whole = mapping.unit == unit && mapping.end_unit <= end;
    any_ |= whole;
    if (may_go && whole) {
      mapping.found.in = &block;
      mapping.found.by = number_;
      // The block knows the youngest of its parts.
      const bool known = !without(Mechanism::kPageEpochs) && range.kind == SizeKind::kLarge &&
                         mapping.last_use.generation == generation;
      const std::uint32_t last = std::max(mapping.last_use.epoch, heap.recentFrees().forgotten());
      mapping.last_use = {known ? std::min(block.epoch, last) : block.epoch, generation};
      free_.push_back(&mapping);
    }
    unit = mapping.end_unit;
  }
}

}  // namespace cistern::pages
