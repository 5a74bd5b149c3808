#include "allocator/engine/pages/placing.hpp"

#include <algorithm>

#include "allocator/base/check.hpp"

namespace cistern::pages {

Block& holeAt(Heap& heap, const PageRange& range, Address place) {
  for (Block* hole = heap.layout(range.kind).holes(); hole; hole = hole->links.right) {
    if (hole->segment == &range && hole->address() <= place && place < hole->end()) return *hole;
  }
  CISTERN_CHECK(false);
  __builtin_unreachable();
}

void prepareMoves(Heap& heap, SizeKind kind, std::size_t pages) {
  if (pages > 0) heap.layout(kind).prepareHoles(unsigned(2 * pages));
}

void prepareMoves(Heap& heap, const std::vector<View*>& views) {
  const auto small = std::ranges::count_if(
      views, [](const View* view) { return view->range->kind == SizeKind::kSmall; });
  prepareMoves(heap, SizeKind::kSmall, std::size_t(small));
  prepareMoves(heap, SizeKind::kLarge, views.size() - std::size_t(small));
}

void takeOut(Heap& heap, std::vector<View*>& views) {
  std::ranges::sort(views, HighestFirst{});
  prepareMoves(heap, views);
  for (View* view : views)
    heap.punch(view->range->kind, *view->found.in, view->place(), view->placeEnd());
}

void putIn(Heap& heap, const View& view, EpochMark last_use) noexcept {
  const PageRange& range = *view.range;
  heap.fill(range.kind, holeAt(heap, range, view.place()), view.place(), view.placeEnd(),
            epochOf(heap, last_use));
}

std::uint32_t epochOf(Heap& heap, EpochMark mark) {
  const std::uint32_t epoch = mark.generation == heap.generation ? mark.epoch : Heap::kOldEpochs;
  return std::min(epoch, heap.epoch);
}

}  // namespace cistern::pages
