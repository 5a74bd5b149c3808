// Sending pages home: where they were mapped first. It takes no device call, and is done when a
// heap is at low tide (tide.hpp): a program that repeats itself then begins each time with its
// pages where they were the time before, comes to need the same windows, finds the pages of each in
// the same places, and takes the views back into use that are still there. After two or three
// rounds it makes no calls.
#include <algorithm>

#include "allocator/engine/pages/mover.hpp"
#include "allocator/engine/pages/page_backing.hpp"

namespace cistern {

using namespace pages;

namespace {

struct Homing {
  View* from;
  View* home;
  EpochMark last_use;
};

std::vector<Homing> awayFromHome(const Survey& survey, const Heap& heap) {
  std::vector<Homing> away;
  for (View* view : survey.freeViews()) {
    View* home = view->page->views.front();
    if (home != view && home->accessible && home->range->home == &heap)
      away.push_back({view, home, {}});
  }
  std::sort(away.begin(), away.end(), [](const Homing& a, const Homing& b) {
    return a.from->range != b.from->range ? a.from->range < b.from->range
                                          : a.from->unit > b.from->unit;
  });
  return away;
}

}  // namespace

// All pages leave before the first arrives: what arrives may merge the blocks that others leave.
void PageBacking::sendHome(Heap& heap) {
  if (!mutex_.try_lock()) return;  // a free does not wait for others' device calls
  const MutexUnlock unlock(mutex_);
  const MutexLock heap_lock(heap.mutex());
  // What is in use stays, and may go when more of it is free.
  heap.pages_moved = heap.busyBytes() != 0;
  heap.tide.noteEbb(heap.busyBytes());
  const Survey survey(heap, ground_.surveys, Whither::kWithinPool);
  std::vector<Homing> away = awayFromHome(survey, heap);
  for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
    heap.layout(kind).prepareHoles(unsigned(2 * away.size()));
  }
  for (Homing& page : away) {
    View& from = *page.from;
    page.last_use = {from.free_block->epoch, heap.generation};
    heap.punch(from.range->kind, *from.free_block, from.place(), from.placeEnd());
    ground_.table.makeStale(from, page.last_use);
    ground_.table.makeCurrent(*page.home);
    ++ground_.counters.revived;
  }
  for (const Homing& page : away) {
    const View& home = *page.home;
    ground_.count(*home.page, &heap, home.range->kind);
    heap.fill(home.range->kind, holeAt(heap, *home.range, home.place()), home.place(),
              home.placeEnd(), page.last_use.epoch);
  }
}

}  // namespace cistern
