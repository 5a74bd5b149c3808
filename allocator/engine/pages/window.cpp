#include "allocator/engine/pages/window.hpp"

#include <algorithm>

namespace cistern::pages {
namespace {

/// Walks to the right from one place until there is room for the request.
class Walk {
 public:
  Walk(const Survey& survey, std::uint64_t number, std::uint64_t bytes, Address from)
      : survey_(survey), number_(number), bytes_(bytes) {
    window_.from = window_.to = from;
  }

  /// The window that begins in `first`, or none. `first` is a free block, which is taken whole, or
  /// a hole, and then the walk begins in it.
  std::optional<Window> from(Block& first) {
    window_.range = &rangeOf(first);
    window_.first = &first;
    for (const Block* b = &first; b && !enough(); b = b->next) {
      if (b->isFree()) {
        window_.to = endIn(*b);
        reach_ = b->end();
      } else if (!b->isHole() || !enter(*b)) {
        return std::nullopt;
      }
    }
    return enough() && revivalsAreElsewhere() ? std::optional(window_) : std::nullopt;
  }

 private:
  bool enough() const { return window_.to - window_.from >= bytes_; }

  // The whole block, or as much as need be and then to the end of a page: pages behind it may be
  // what the window lacks elsewhere.
  Address endIn(const Block& free) const {
    const Address needed = window_.from + bytes_;
    if (needed >= free.end() || without(Mechanism::kFreeCut)) return free.end();
    const PageRange& range = *window_.range;
    return std::min(free.end(), range.slots[range.unitAt(needed - 1)]->placeEnd());
  }

  // Goes through a hole as far as need be. False when a stale view is in the way.
  bool enter(const Block& hole) {
    const PageRange& range = *window_.range;
    std::uint32_t unit = range.unitAt(window_.to);
    const std::uint32_t end = range.unitAt(hole.end());
    while (unit < end && !enough()) {
      const View* view = range.slots[unit];
      if (view == nullptr) {
        ++window_.units_to_map;
        ++unit;
      } else {
        if (view->unit != unit || !revive(*view)) return false;
        unit = view->endUnit();
      }
      window_.to = range.placeOfUnit(unit);
    }
    return true;
  }

  // A page can be in one place only.
  bool revive(const View& view) {
    if (!view.accessible || !survey_.mayMove(*view.page) || view.page->considered == number_)
      return false;
    view.page->considered = number_;
    ++window_.revivals;
    return true;
  }

  // What is taken back into use must not come from the window itself, nor from the block that its
  // end cuts in two.
  bool revivalsAreElsewhere() const {
    if (window_.revivals == 0) return true;
    const PageRange& range = *window_.range;
    for (std::uint32_t u = range.unitAt(window_.from); u < range.unitAt(window_.to + kUnit - 1);) {
      const View* view = range.slots[u];
      if (view && !view->isCurrent() && !view->page->parked) {
        const View& now = *view->page->current;
        const bool inside = now.range == &range && now.place() >= window_.from &&
                            now.place() < std::max(window_.to, reach_);
        if (inside) return false;
      }
      u = view ? view->endUnit() : u + 1;
    }
    return true;
  }

  const Survey& survey_;
  const std::uint64_t number_;
  const std::uint64_t bytes_;
  Window window_;
  Address reach_ = 0;  ///< the end of the last free block
};

class Search {
 public:
  Search(const Request& request, const Survey& survey, std::uint64_t& number)
      : bytes_(request.rounded()), survey_(survey), number_(number) {}

  std::optional<Window> best() const { return best_; }

  // What begins with the free block before the hole, or with the hole.
  void fromStart(Block& hole) {
    if (hole.prev && hole.prev->isFree()) {
      consider(*hole.prev, hole.prev->address());
    } else {
      consider(hole, hole.address());
    }
  }

  // What begins in the hole, behind a stale view that bars the way.
  void fromWithin(Block& hole) {
    const PageRange& range = rangeOf(hole);
    const std::uint32_t end = range.unitAt(hole.end());
    for (std::uint32_t u = range.unitAt(hole.address()); u < end;) {
      const View* view = range.slots[u];
      const bool bars = !without(Mechanism::kBehindStale) && view &&
                        (!view->accessible || !survey_.mayMove(*view->page));
      u = view ? view->endUnit() : u + 1;
      if (bars && u < end) consider(hole, range.placeOfUnit(u));
    }
  }

  // What begins where there never was a view: nothing bars it, and there is room for pages of any
  // size.
  void fromUntouched(Block& hole) {
    const PageRange& range = rangeOf(hole);
    const Address from = range.placeOfUnit(range.touched);
    if (from < hole.end()) consider(hole, std::max(from, hole.address()));
  }

  // What ends with the free block behind the hole.
  void toEnd(Block& hole) {
    if (without(Mechanism::kBeforeFree)) return;
    const Block* free = hole.next;
    if (free == nullptr || !free->isFree() || free->bytes() >= bytes_) return;
    const std::uint64_t lacking = bytes_ - free->bytes();
    if (lacking > hole.bytes()) return;
    const PageRange& range = rangeOf(hole);
    std::uint32_t unit = range.unitAt(hole.end() - lacking);
    if (const View* view = range.slots[unit]) unit = view->unit;
    consider(hole, range.placeOfUnit(unit));
  }

 private:
  void consider(Block& first, Address from) {
    Walk walk(survey_, ++number_, bytes_, from);
    const std::optional<Window> window = walk.from(first);
    if (window && (!best_ || window->betterThan(*best_))) best_ = window;
  }

  const std::uint64_t bytes_;
  const Survey& survey_;
  std::uint64_t& number_;
  std::optional<Window> best_;
};

}  // namespace

std::optional<Window> bestWindow(Heap& heap, const Request& request, const Survey& survey,
                                 std::uint64_t& windows, bool fresh_only) {
  Search search(request, survey, windows);
  for (Block* hole = heap.layout(request.kind).holes(); hole; hole = hole->links.right) {
    if (hole->next == nullptr) search.fromUntouched(*hole);
    if (fresh_only) continue;
    search.fromStart(*hole);
    search.fromWithin(*hole);
    search.toEnd(*hole);
  }
  return search.best();
}

}  // namespace cistern::pages
