#include "allocator/engine/pages/window.hpp"

#include <algorithm>

namespace cistern::pages {
namespace {

/// Walks to the right from one place until there is room for the request. `kGone`: pages that lie
/// free are gone (PagesInReach).
template <bool kGone>
class Walk {
 public:
  Walk(const PagesInReach& pages, std::uint64_t number, std::uint64_t bytes, Address from)
      : pages_(pages), number_(number), bytes_(bytes) {
    window_.from = window_.to = from;
  }

  /// The window that begins in `first`, a free block or a hole, or none.
  std::optional<Window> windowIn(Block& first) {
    window_.range = &rangeOf(first);
    window_.first = &first;
    for (const Block* b = &first; b && !enough(); b = b->next) {
      if (b->isFree()) {
        if constexpr (kGone) countGone(*b);
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

  // The window takes the whole block, or as much as need be and then to the end of a page. Pages
  // behind that may be what the window lacks elsewhere.
  Address endIn(const Block& free) const {
    const Address needed = window_.from + bytes_;
    if (needed >= free.end() || without(Mechanism::kFreeCut)) return free.end();
    const PageRange& range = *window_.range;
    return std::min(free.end(), range.slots[range.unitAt(needed - 1)]->placeEnd());
  }

  // The units of the block that the request would take, and whose page is gone.
  void countGone(const Block& free) {
    const PageRange& range = *window_.range;
    const Address end = std::min(free.end(), window_.from + bytes_);
    for (std::uint32_t unit = range.unitAt(window_.to); range.placeOfUnit(unit) < end; ++unit)
      window_.units_to_map += lacks(range.slots[unit]) ? 1 : 0;
  }

  // Whether a unit with that mapping, or null, has to be mapped.
  bool lacks(const Mapping* mapping) const {
    if constexpr (kGone) return pages_.lacks(mapping);
    return mapping == nullptr;
  }

  // Goes through a hole as far as need be. False when a stale mapping is in the way that cannot be
  // taken back into use.
  bool enter(const Block& hole) {
    const PageRange& range = *window_.range;
    std::uint32_t unit = range.unitAt(window_.to);
    const std::uint32_t end = range.unitAt(hole.end());
    while (unit < end && !enough()) {
      const Mapping* mapping = range.slots[unit];
      if (lacks(mapping)) {
        ++window_.units_to_map;
        ++unit;
      } else {
        if (mapping->unit != unit || !countRevival(*mapping)) return false;
        unit = mapping->end_unit;
      }
      window_.to = range.placeOfUnit(unit);
    }
    return true;
  }

  // A page can be in one place only.
  bool countRevival(const Mapping& mapping) {
    if (kGone || !mapping.accessible || !pages_.mayMove(*mapping.page) ||
        mapping.page->considered == number_)
      return false;
    mapping.page->considered = number_;
    ++window_.revivals;
    return true;
  }

  // A page that is taken back into use must not come from the window itself, nor from the blocks
  // that its ends cut in two.
  bool revivalsAreElsewhere() const {
    if (window_.revivals == 0) return true;
    bool elsewhere = true;
    const Block& first = *window_.first;
    const Address begin = first.isFree() ? first.address() : window_.from;
    forEachMapping(*window_.range, window_.from, window_.to, [&](const Mapping& mapping) {
      if (mapping.isCurrent()) return;
      const Mapping& now = *mapping.page->current;
      elsewhere &= now.range != window_.range || now.placeEnd() <= begin ||
                   now.place() >= std::max(window_.to, reach_);
    });
    return elsewhere;
  }

  const PagesInReach& pages_;
  const std::uint64_t number_;
  const std::uint64_t bytes_;
  Window window_;
  Address reach_ = 0;  ///< the end of the last free block, also where the window ends before it
};

/// The end of the run of free blocks and holes around the hole. Or a place so far behind the hole
/// that any window which begins in it has ended.
Address runEnd(const Block& hole, std::uint64_t bytes) {
  const Block* last = &hole;
  while (last->end() < hole.end() + bytes && last->next &&
         (last->next->isFree() || last->next->isHole()))
    last = last->next;
  return last->end();
}

/// The places in a hole, or before it, where windows for the request may begin; each with the block
/// that it is in. Addresses of the device are as far from their places as multiples of a unit,
/// which no alignment exceeds.
template <bool kGone, class Consider>
void forEachStart(Block& hole, const PagesInReach& pages, const Request& request,
                  Consider consider) {
  const std::uint64_t bytes = request.rounded();
  const PageRange& range = rangeOf(hole);
  const Address end = runEnd(hole, bytes);
  Block& first = hole.prev && hole.prev->isFree() ? *hole.prev : hole;
  const Address from = roundUp(first.address(), request.alignment());
  if (end - from < bytes) return;
  consider(from < hole.address() ? first : hole, from);
  if (end - hole.address() < bytes || without(Mechanism::kBehindStale)) return;
  // Behind a stale mapping that bars the way.
  const Address last = std::min(hole.end() - kUnit, end - bytes);
  forEachMapping(range, hole.address(), last, [&](const Mapping& mapping) {
    if (mapping.placeEnd() > last) return;
    const bool bars = kGone || !mapping.accessible || !pages.mayMove(*mapping.page);
    if (bars) consider(hole, mapping.placeEnd());
  });
}

template <bool kGone>
std::optional<Window> best(Heap& heap, const Request& request, const PagesInReach& pages,
                           std::uint64_t& last, const PageRange* only)
    CISTERN_REQUIRES(heap.mutex()) {
  const std::uint64_t bytes = request.rounded();
  const bool large = request.kind == SizeKind::kLarge;
  const Address least = large ? heap.rounds().frozenFrom() : 0;
  std::optional<Window> best;
  const auto consider = [&](Block& first, Address from) {
    if (from < least) return;
    const std::optional<Window> window = Walk<kGone>(pages, ++last, bytes, from).windowIn(first);
    if (window && (!best || window->betterThan(*best))) best = window;
  };
  for (Block* hole = heap.layout(request.kind).holes(); hole; hole = hole->links.right) {
    if (only != nullptr && hole->segment != only) continue;
    // Nothing bars a window where there never was a mapping, and there is room for large pages.
    const PageRange& range = rangeOf(*hole);
    const Address fresh = std::max(range.placeOfUnit(range.touched), hole->address());
    if (hole->next == nullptr && fresh < hole->end()) consider(*hole, fresh);
    if (only == nullptr) forEachStart<kGone>(*hole, pages, request, consider);
  }
  return best;
}

}  // namespace

std::optional<Window> bestWindow(Heap& heap, const Request& request, const PagesInReach& pages,
                                 std::uint64_t& last, const PageRange* only) {
  return pages.gone == nullptr ? best<false>(heap, request, pages, last, only)
                               : best<true>(heap, request, pages, last, only);
}

// The block that covers a place of the heap's; null if that is in none of its segments now.
static Block* covering(Heap& heap, SizeKind kind, Address at) CISTERN_REQUIRES(heap.mutex()) {
  for (const Segment* in = heap.layout(kind).segments(); in; in = in->next) {
    if (Block* const block = in->covering(at)) return block;
  }
  return nullptr;
}

// In a hole the window begins with the page that the block begins in.
std::optional<Window> windowAt(Heap& heap, const Request& request, const PagesInReach& pages,
                               std::uint64_t& last, Address at) {
  Block* const first = covering(heap, request.kind, at);
  if (first == nullptr || (!first->isFree() && !first->isHole())) return std::nullopt;
  Address from = at;
  if (first->isHole()) {
    const PageRange& range = rangeOf(*first);
    const Mapping* const there = range.slots[range.unitAt(at)];
    if (there == nullptr || there->place() < first->address()) return std::nullopt;
    from = there->place();
  }
  auto window = Walk<false>(pages, ++last, at + request.rounded() - from, from).windowIn(*first);
  if (!window || window->units_to_map > 0) return std::nullopt;
  window->at = at;
  return window;
}

}  // namespace cistern::pages
