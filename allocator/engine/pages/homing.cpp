// Sending pages home: where they were mapped first. It takes no device call, and is done when a
// heap is at low tide (tide.hpp): a program that repeats itself then begins each time with its
// pages where they were the time before, comes to need the same windows, finds the pages of each in
// the same places, and takes the views back into use that are still there. After two or three
// rounds it makes no calls.
#include <algorithm>

#include "allocator/engine/pages/mover.hpp"
#include "allocator/engine/pages/page_backing.hpp"
#include "allocator/engine/pages/parking.hpp"

namespace cistern {

using namespace pages;

namespace {

struct Homing {
  View* from;
  View* home;
  EpochMark last_use;
  bool aside;
};

std::uint64_t memoryOf(Heap& heap) CISTERN_NO_TSA {
  return heap.layout(SizeKind::kSmall).segmentBytes() +
         heap.layout(SizeKind::kLarge).segmentBytes();
}

// Late pages are few, or are late no longer.
bool parksLate(const Survey& survey, Heap& heap, ViewTable& table) CISTERN_NO_TSA {
  if (without(Mechanism::kParking)) return false;
  if (!table.anyLate() || !heap.pool().isDefault() || heap.recorded != 0) return false;
  std::uint64_t late = 0;
  for (const View* view : survey.freeViews()) late += view->page->late ? view->bytes() : 0;
  if (late <= memoryOf(heap) / kPartAside || without(Mechanism::kParkedMostly)) return late > 0;
  for (const View* view : survey.freeViews()) table.setLate(*view->page, false);
  return false;
}

// Those that go home, and those that go aside, which may be at home.
std::vector<Homing> leaving(const Survey& survey, Heap& heap, Ground& ground) {
  const bool parks = ground.recycles() && parksLate(survey, heap, ground.table);
  std::vector<Homing> away;
  for (View* view : survey.freeViews()) {
    if (view->is_home && !parks) continue;
    View* home = view->page->views.front();
    if (!home->accessible || home->range->home != &heap) continue;
    const bool aside = parks && view->page->late && view->page->mayLeave();
    if (aside || home != view) away.push_back({view, home, {}, aside});
  }
  std::ranges::sort(away, HighestFirst{}, &Homing::from);
  return away;
}

}  // namespace

// All pages leave before the first arrives: what arrives may merge the blocks that others leave.
bool PageBacking::sendHome(Heap& heap) {
  if (without(Mechanism::kHoming)) return false;
  if (!mutex_.try_lock()) return false;  // a free does not wait for others' device calls
  const MutexUnlock unlock(mutex_);
  const MutexLock heap_lock(heap.mutex());
  // What is in use stays, and may go when more of it is free.
  heap.pages_moved = heap.busyBytes() != 0;
  heap.tide.noteEbb(heap.busyBytes());
  heap.ebbed = false;
  // What has become too much to lie aside belongs to what rounds begin with.
  const std::uint64_t aside = bytesAside(ground_, heap);
  if (!without(Mechanism::kParkedMostly) && aside > 0 && aside > memoryOf(heap) / (kPartAside / 2))
    (void)bringBack(ground_, heap);
  const Survey survey(heap, ground_.surveys, Whither::kWithinPool);
  std::vector<Homing> away = leaving(survey, heap, ground_);
  ground_.parked.reserve(ground_.parked.size() + away.size());
  for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
    heap.layout(kind).prepareHoles(unsigned(2 * away.size()));
  }
  for (Homing& page : away) {
    View& from = *page.from;
    page.last_use = from.last_use;
    heap.punch(from.range->kind, *from.found.in, from.place(), from.placeEnd());
    if (page.aside) {
      park(ground_, from, page.last_use);
      continue;
    }
    ground_.table.makeStale(from, page.last_use);
    ground_.table.makeCurrent(*page.home);
    ++ground_.counters.revived;
  }
  for (const Homing& page : away) {
    if (page.aside) continue;
    const View& home = *page.home;
    ground_.count(*home.page, &heap, home.range->kind);
    heap.fill(home.range->kind, holeAt(heap, *home.range, home.place()), home.place(),
              home.placeEnd(), page.last_use.epoch);
  }
  return heap.overAnyCeiling();
}

}  // namespace cistern
