#include "allocator/engine/pages/free_page_scan.hpp"

#include <algorithm>

namespace cistern::pages {

FreePageScan::FreePageScan(Heap& heap, std::uint64_t& last) : heap_(heap), number_(++last) {
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

// The mappings that begin and end inside the block, which knows the youngest of its parts.
void FreePageScan::note(Heap& heap, Block& block) {
  const Completion& known = heap.completion();
  const std::uint64_t forgotten = known.epochOf(heap.recentFrees().forgotten());
  const PageRange& range = rangeOf(block);
  const bool large = range.kind == SizeKind::kLarge && !without(Mechanism::kPageEpochs);
  const std::uint32_t from = range.unitAt(block.address() + kUnit - 1),
                      end = range.unitAt(block.end());
  forEachMapping(range, block.address(), block.end(), [&](Mapping& mapping) {
    if (mapping.unit < from || mapping.end_unit > end) return;
    mapping.found = {number_, &block};
    const std::uint64_t last = large ? std::max(mapping.last_use, forgotten) : UINT64_MAX;
    mapping.last_use = std::min(known.epochOf(block.epoch), last);
    free_.push_back(&mapping);
  });
}

}  // namespace cistern::pages
