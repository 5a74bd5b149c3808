#include "allocator/engine/pages/survey.hpp"

namespace cistern::pages {

Survey::Survey(Heap& heap, Scratch& scratch, Whither whither) CISTERN_NO_TSA
    : number_(++scratch.surveys),
      whither_(whither),
      free_(scratch.views) {
  free_.clear();
  for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
    heap.layout(kind).listLeftOut();
    heap.layout(kind).forEachFree(kUnitGrains, [&](Block& block) { note(block); });
  }
}

// The views that begin and end inside the block. Hardly any of them is in the host's cache, and one
// says where the next begins: so what lies a few pages ahead is fetched on the way.
void Survey::note(Block& block) {
  constexpr std::uint32_t kAhead = 32;
  const PageRange& range = rangeOf(block);
  const std::uint32_t end = range.unitAt(block.end());
  std::uint32_t unit = range.unitAt(block.address() + kUnit - 1);
  while (unit < end) {
    View& view = *range.slots[unit];
    if (unit + kAhead < end) __builtin_prefetch(range.slots[unit + kAhead], 1);
    const bool may_go = whither_ == Whither::kWithinPool || view.page->mayLeave();
    const bool whole = view.unit == unit && view.endUnit() <= end;
    any_ |= whole;
    if (may_go && whole) {
      view.found.in = &block;
      view.found.by = number_;
      free_.push_back(&view);
    }
    unit = view.endUnit();
  }
}

}  // namespace cistern::pages
