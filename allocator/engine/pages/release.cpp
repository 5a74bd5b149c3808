#include "allocator/engine/pages/release.hpp"

#include <algorithm>

#include "allocator/engine/pages/parking.hpp"
#include "allocator/engine/pages/placing.hpp"

namespace cistern::pages {
namespace {

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

// Takes out what the rule names, with room for each to come back.
std::vector<View*> detach(Ground& ground, Heap& heap, const ReleaseRule& rule, bool& more_later) {
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
  std::ranges::sort(views, {}, [](const View* view) { return view->last_use.epoch; });
  std::uint64_t bytes = 0;
  std::size_t count = 0;
  for (; count < views.size() && bytes < rule.bytes; ++count) bytes += views[count]->bytes();
  views.resize(count);
  takeOut(heap, views);
  for (const View* view : views) heap.layout(view->range->kind).reserveFill();
  return views;
}

// False, and the page is the heap's as before, when some view of it is still used or will not go.
bool giveBack(Ground& ground, Heap& heap, View& current) noexcept {
  PhysicalPage& page = *current.page;
  const PageRange& range = *current.range;
  bool gone = true;
  for (std::size_t i = page.views.size(); gone && i-- > 0;) {
    View& view = *page.views[i];
    gone = &view == &current || (lastUseIsComplete(ground, view) && removeMapping(ground, view));
  }
  if (gone) {
    ground.table.makeStale(current);
    gone = removeMapping(ground, current);
    if (!gone) ground.table.makeCurrent(current);
  }
  {
    const MutexLock lock(heap.mutex());
    heap.layout(range.kind).endReserve();
    if (!gone) putIn(heap, current, current.last_use);
  }
  if (gone) ground.release(page);
  return gone;
}

}  // namespace

void Ground::count(PhysicalPage& page, Heap* heap, SizeKind kind) noexcept CISTERN_NO_TSA {
  if (page.counted_by != nullptr && page.counted_by != heap) page.late = false;
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
  for (View* view : detach(ground, heap, rule, released.more_later)) {
    const std::uint64_t bytes = view->bytes();
    if (giveBack(ground, heap, *view)) {
      released.bytes += bytes;
    } else {
      released.more_later = true;
    }
  }
  return released;
}

}  // namespace cistern::pages
