#include "allocator/engine/pages/survey.hpp"

namespace cistern::pages {

Survey::Survey(Heap& heap, std::uint64_t number, Whither whither) CISTERN_NO_TSA
    : number_(number),
      whither_(whither) {
  for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
    heap.layout(kind).forEachFree(kUnitGrains, [&](Block& block) { note(block); });
  }
}

// The views that begin and end inside the block.
void Survey::note(Block& block) {
  const PageRange& range = rangeOf(block);
  const std::uint32_t end = range.unitAt(block.end());
  std::uint32_t unit = range.unitAt(block.address() + kUnit - 1);
  while (unit < end) {
    View& view = *range.slots[unit];
    const bool may_go = whither_ == Whither::kWithinPool || view.page->mayLeave();
    if (may_go && view.unit == unit && view.endUnit() <= end) {
      view.free_block = &block;
      view.seen = number_;
      free_.push_back(&view);
    }
    unit = view.endUnit();
  }
}

}  // namespace cistern::pages
