// Sending pages home: where they were mapped first. It takes no device call, and is done when a
// heap is at low tide (tide.hpp): a program that repeats itself then begins each time with its
// pages where they were the time before, comes to need the same windows, finds the pages of each in
// the same places, and takes the views back into use that are still there. After two or three
// rounds it makes no calls.
#include "allocator/engine/pages/page_backing.hpp"
#include "allocator/engine/pages/parking.hpp"
#include "allocator/engine/pages/placing.hpp"

namespace cistern {

using namespace pages;

namespace {

std::uint64_t memoryOf(Heap& heap) CISTERN_NO_TSA {
  return heap.layout(SizeKind::kSmall).segmentBytes() +
         heap.layout(SizeKind::kLarge).segmentBytes();
}

// Late pages are few, or are late no longer.
bool parksLate(const Survey& survey, Heap& heap, const Ground& ground) CISTERN_NO_TSA {
  if (without(Mechanism::kParking)) return false;
  if (!ground.recycles() || !heap.pool().isDefault() || heap.recorded != 0) return false;
  std::uint64_t late = 0;
  for (const View* view : survey.freeViews()) late += view->page->late ? view->bytes() : 0;
  if (late <= memoryOf(heap) / kPartAside || without(Mechanism::kParkedMostly)) return late > 0;
  for (const View* view : survey.freeViews()) view->page->late = false;
  return false;
}

bool goesAside(const View& view) { return view.page->late && view.page->mayLeave(); }

// Those that go home, and those that go aside, which may be at home.
std::vector<View*> leaving(const Survey& survey, const Heap& heap, bool parks) {
  std::vector<View*> away;
  for (View* view : survey.freeViews()) {
    const View& home = *view->page->views.front();
    if (!home.accessible || home.range->home != &heap) continue;
    if (&home != view || (parks && goesAside(*view))) away.push_back(view);
  }
  return away;
}

}  // namespace

// All pages leave before the first arrives: what arrives may merge the blocks that others leave.
void PageBacking::sendHome(Heap& heap) {
  if (without(Mechanism::kHoming)) return;
  if (!mutex_.try_lock()) return;  // a free does not wait for others' device calls
  const MutexUnlock unlock(mutex_);
  const MutexLock heap_lock(heap.mutex());
  // What is in use stays, and may go when more of it is free.
  heap.pages_moved = heap.busyBytes() != 0;
  heap.tide.noteEbb(heap.busyBytes());
  heap.ebbed = false;
  // What has become too much to lie aside belongs to what rounds begin with.
  const std::uint64_t aside = bytesAside(ground_, heap);
  if (!without(Mechanism::kParkedMostly) && aside > memoryOf(heap) / (kPartAside / 2))
    (void)bringBack(ground_, heap);
  const Survey survey(heap, ground_.surveys, Whither::kWithinPool);
  const bool parks = parksLate(survey, heap, ground_);
  std::vector<View*> away = leaving(survey, heap, parks);
  ground_.parked.reserve(ground_.parked.size() + away.size());
  takeOut(heap, away);
  for (View* from : away) {
    if (parks && goesAside(*from)) {
      park(ground_, *from);
    } else {
      ground_.table.makeStale(*from);
    }
  }
  for (const View* from : away) {
    if (from->page->parked) continue;
    View& home = *from->page->views.front();
    ground_.table.makeCurrent(home);
    ++ground_.counters.revived;
    ground_.count(*home.page, &heap, home.range->kind);
    putIn(heap, home, from->last_use);
  }
}

}  // namespace cistern
