#include "allocator/engine/pages/survey.hpp"

#include <algorithm>

namespace cistern::pages {

Survey::Survey(Heap& heap, std::uint64_t& surveys, Whither whither) CISTERN_NO_TSA
    : heap_(heap),
      number_(++surveys),
      whither_(whither) {
  stampRecent(heap);
  for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
    heap.layout(kind).listLeftOut();
    heap.layout(kind).forEachFree(kUnitGrains,
                                  [&](Block& block) CISTERN_NO_TSA { note(heap, block); });
  }
}

// The heap remembers what was freed since the last survey; each page, the last of it. Two may have
// the epochs the other way round: what comes back complete is stamped with an older one.
void Survey::stampRecent(Heap& heap) {
  heap.recent.take([&](const RecentFrees::Piece& piece) CISTERN_NO_TSA {
    const auto& range = static_cast<const PageRange&>(*piece.in);
    const std::uint32_t end = (piece.to + kUnitGrains - 1) / kUnitGrains;
    for (std::uint32_t unit = piece.from / kUnitGrains; unit < end;) {
      View* const view = range.slots[unit++];
      if (view == nullptr) continue;
      unit = view->endUnit();
      EpochMark& last = view->last_use;
      const bool later = last.generation != heap.generation || last.epoch < piece.epoch;
      if (view->isCurrent() && later) last = {piece.epoch, heap.generation};
    }
  });
}

// The views that begin and end inside the block. Hardly any of them is in the host's cache, and one
// says where the next begins: so what lies a few pages ahead is fetched on the way.
void Survey::note(Heap& heap, Block& block) {
  constexpr std::uint32_t kAhead = 32;
  const PageRange& range = rangeOf(block);
  const std::uint32_t end = range.unitAt(block.end());
  std::uint32_t unit = range.unitAt(block.address() + kUnit - 1);
  while (unit < end) {
    View& view = *range.slots[unit];
    if (unit + kAhead < end && !without(Mechanism::kPrefetchPages))
      __builtin_prefetch(range.slots[unit + kAhead], 1);
    const bool may_go = whither_ == Whither::kWithinPool || view.page->mayLeave();
    const bool whole = view.unit == unit && view.endUnit() <= end;
    any_ |= whole;
    if (may_go && whole) {
      view.found.in = &block;
      view.found.by = number_;
      // The block knows the youngest of its parts.
      const bool known = !without(Mechanism::kPageEpochs) && range.kind == SizeKind::kLarge &&
                         view.last_use.generation == heap.generation;
      const std::uint32_t last = std::max(view.last_use.epoch, heap.recent.forgotten());
      view.last_use = {known ? std::min(block.epoch, last) : block.epoch, heap.generation};
      free_.push_back(&view);
    }
    unit = view.endUnit();
  }
}

}  // namespace cistern::pages
