#include "allocator/engine/pages/release.hpp"

#include <algorithm>

#include "allocator/engine/pages/mover.hpp"
#include "allocator/engine/pages/parking.hpp"

namespace cistern::pages {
namespace {

/// A free page that was taken out of its heap's free memory, to be given back.
struct Leaving {
  PhysicalPage* page;
  SizeKind kind;  ///< in whose layout there is room for it to come back
  EpochMark last_use;
};

bool lastUseIsComplete(const View& view) {
  Heap& home = *view.range->home;
  const MutexLock lock(home.mutex());
  return home.complete(view.last_use);
}

// The same, asking the stream if need be.
bool lastUseIsComplete(Ground& ground, const View& view) {
  if (lastUseIsComplete(view)) return true;
  ground.refresh(*view.range->home);
  return lastUseIsComplete(view);
}

bool removeMapping(Ground& ground, View& view) noexcept {
  if (!ground.device.unmap(view.deviceAddress(), view.bytes())) return false;
  ground.table.removeView(view);
  return true;
}

void putBack(Heap& heap, const View& view, std::uint32_t epoch) CISTERN_NO_TSA {
  const MutexLock lock(heap.mutex());
  heap.layout(view.range->kind).endReserve();
  heap.fill(view.range->kind, holeAt(heap, *view.range, view.place()), view.place(),
            view.placeEnd(), std::min(epoch, heap.epoch));
}

// Takes out what the rule names.
std::vector<Leaving> detach(Ground& ground, Heap& heap, const ReleaseRule& rule, bool& more_later) {
  const MutexLock lock(heap.mutex());
  (void)bringBack(ground, heap);
  const Survey survey(heap, ground.surveys, Whither::kAnywhere);
  std::vector<View*> views;
  for (View* view : survey.freeViews()) {
    if (view->last_use.epoch > rule.latest_epoch) continue;
    const bool complete = heap.complete(view->last_use);
    more_later |= !complete;
    if (complete) views.push_back(view);
  }
  std::sort(views.begin(), views.end(),
            [](const View* a, const View* b) { return a->last_use.epoch < b->last_use.epoch; });
  std::uint64_t bytes = 0;
  std::size_t count = 0;
  for (; count < views.size() && bytes < rule.bytes; ++count) bytes += views[count]->bytes();
  views.resize(count);
  std::ranges::sort(views, HighestFirst{});
  std::vector<Leaving> leaving;
  leaving.reserve(count);
  for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
    heap.layout(kind).prepareHoles(unsigned(2 * count + 2));
  }
  for (View* view : views) {
    const SizeKind kind = view->range->kind;
    leaving.push_back({view->page, kind, view->last_use});
    heap.punch(kind, *view->found.in, view->place(), view->placeEnd());
    heap.layout(kind).reserveFill();
  }
  return leaving;
}

// False, and the page is the heap's as before, when some view of it is still used or will not go.
bool giveBack(Ground& ground, Heap& heap, const Leaving& leaving) noexcept {
  PhysicalPage& page = *leaving.page;
  View& current = *page.current;
  bool gone = true;
  for (std::size_t i = page.views.size(); gone && i-- > 0;) {
    View& view = *page.views[i];
    gone = &view == &current || (lastUseIsComplete(ground, view) && removeMapping(ground, view));
  }
  if (gone) {
    ground.table.makeStale(current, leaving.last_use);
    gone = removeMapping(ground, current);
    if (!gone) ground.table.makeCurrent(current);
  }
  if (!gone) {
    putBack(heap, current, leaving.last_use.epoch);
    return false;
  }
  {
    const MutexLock lock(heap.mutex());
    heap.layout(leaving.kind).endReserve();
  }
  ground.release(page);
  return true;
}

}  // namespace

void Ground::count(PhysicalPage& page, Heap* heap, SizeKind kind) noexcept CISTERN_NO_TSA {
  if (page.counted_by != nullptr && page.counted_by != heap) table.setLate(page, false);
  const bool real = page.counted_by == nullptr || heap == nullptr;
  if (page.counted_by) page.counted_by->countBacking(page.counted_as, page.bytes(), -1, real);
  if (heap) heap->countBacking(kind, page.bytes(), +1, real);
  if (!real) heap->countMoved(page.counted_as, kind, page.bytes());
  page.counted_by = heap;
  page.counted_as = kind;
}

bool Ground::release(PhysicalPage& page) noexcept {
  if (!device.releasePage(page.handle)) return false;
  if (Heap* heap = page.counted_by) {
    const MutexLock lock(heap->mutex());
    count(page, nullptr, page.counted_as);
  }
  limit.giveBack(page.bytes());
  ++counters.returned;
  table.removePage(page);
  return true;
}

std::size_t retireViews(Ground& ground, std::size_t keep, std::size_t most) {
  if (ground.table.staleViews() <= keep) return 0;
  std::size_t retired = 0;
  const Heap* asked = nullptr;
  for (View* view = ground.table.oldestStale(); view && retired < most;) {
    if (ground.table.staleViews() <= keep) break;
    View* const next = view->beside.younger;
    if (view->page->parked && view == view->page->views.front()) {  // it comes back through it
      view = next;
      continue;
    }
    const bool ask = view->range->home != asked;
    asked = view->range->home;
    if (ask ? !lastUseIsComplete(ground, *view) : !lastUseIsComplete(*view)) {
      view = next;
      continue;
    }
    if (removeMapping(ground, *view)) {
      ++retired;
      ++ground.counters.retired;
    }
    view = next;
  }
  return retired;
}

Released releaseFree(Ground& ground, Heap& heap, const ReleaseRule& rule) {
  Released released;
  ground.refresh(heap);
  for (const Leaving& leaving : detach(ground, heap, rule, released.more_later)) {
    const std::uint64_t bytes = leaving.page->bytes();
    if (giveBack(ground, heap, leaving)) {
      released.bytes += bytes;
    } else {
      released.more_later = true;
    }
  }
  return released;
}

}  // namespace cistern::pages
