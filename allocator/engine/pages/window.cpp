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

/// The places in a hole, or before it, where windows may begin; each with the block that it is in.
template <class Consider>
void forEachStart(Block& hole, const Survey& survey, Consider consider) {
  const PageRange& range = rangeOf(hole);
  Block* const before = hole.prev && hole.prev->isFree() ? hole.prev : nullptr;
  consider(before ? *before : hole, (before ? before : &hole)->address());
  // Behind a stale view that bars the way.
  const std::uint32_t end = range.unitAt(hole.end());
  for (std::uint32_t u = range.unitAt(hole.address()); u < end;) {
    const View* view = range.slots[u];
    const bool bars = !without(Mechanism::kBehindStale) && view &&
                      (!view->accessible || !survey.mayMove(*view->page));
    u = view ? view->endUnit() : u + 1;
    if (bars && u < end) consider(hole, range.placeOfUnit(u));
  }
}

/// Where there never was a view: nothing bars a window there, and there is room for pages of any
/// size. Pre: the hole is the range's last block.
Address untouchedIn(const Block& hole) {
  const PageRange& range = rangeOf(hole);
  return std::max(range.placeOfUnit(range.touched), hole.address());
}

}  // namespace

std::optional<Window> bestWindow(Heap& heap, const Request& request, const Survey& survey,
                                 std::uint64_t& windows, bool fresh_only) {
  const std::uint64_t bytes = request.rounded();
  std::optional<Window> best;
  const auto consider = [&](Block& first, Address from) {
    const std::optional<Window> window = Walk(survey, ++windows, bytes, from).from(first);
    if (window && (!best || window->betterThan(*best))) best = window;
  };
  for (Block* hole = heap.layout(request.kind).holes(); hole; hole = hole->links.right) {
    if (hole->next == nullptr && untouchedIn(*hole) < hole->end())
      consider(*hole, untouchedIn(*hole));
    if (!fresh_only) forEachStart(*hole, survey, consider);
  }
  return best;
}

}  // namespace cistern::pages
