#include "allocator/engine/pages/comeback.hpp"

#include "allocator/engine/pages/placing.hpp"

namespace cistern::pages {

bool Comeback::want(const PageRange& range, Address from, Address to, std::vector<View*>& away) {
  const std::uint32_t end = range.unitAt(to + kUnit - 1);
  for (std::uint32_t unit = range.unitAt(from); unit < end;) {
    View* const view = range.slots[unit];
    if (view == nullptr || !view->accessible || view->page->current == nullptr) return false;
    const auto [place, fresh] = places_.try_emplace(view->page, view);
    if (place->second != view) return false;
    if (!view->isCurrent()) away.push_back(view);
    if (fresh && !view->isCurrent()) views_.push_back(view);
    unit = view->endUnit();
  }
  return true;
}

void Comeback::prepare() CISTERN_NO_TSA {
  for (const View* view : views_) {
    for (const View* moved : {view, static_cast<const View*>(view->page->current)})
      prepareMoves(*moved->range->home, moved->range->kind, views_.size());
  }
}

void Comeback::bring(Ground& ground) noexcept CISTERN_NO_TSA {
  for (View* to : views_) {
    View& from = *to->page->current;
    Heap &source = *from.range->home, &heap = *to->range->home;
    Block& free = *Layout::covering(*from.range, from.place());
    from.last_use = {free.epoch, source.generation};
    source.punch(from.range->kind, free, from.place(), from.placeEnd());
    ground.table.makeStale(from);
    ground.table.makeCurrent(*to);
    ground.count(*to->page, &heap, to->range->kind);
    putIn(heap, *to, &heap == &source ? from.last_use : EpochMark{heap.epoch, heap.generation});
    ++ground.counters.revived;
  }
}

}  // namespace cistern::pages
