#include "allocator/engine/pages/parking.hpp"

#include <algorithm>

#include "allocator/engine/pages/mover.hpp"

namespace cistern::pages {

void park(Ground& ground, View& from, EpochMark last_use) noexcept {
  ground.table.makeStale(from, last_use);
  from.page->last_use = last_use;
  parkAgain(ground, *from.page);
}

void parkAgain(Ground& ground, PhysicalPage& page) noexcept {
  page.parked = true;
  ++page.counted_by->aside;
  ground.parked.push_back(&page);
  ground.counters.parked_bytes += page.bytes();
}

std::uint64_t bytesAside(const Ground& ground, const Heap& heap) {
  std::uint64_t bytes = 0;
  for (const PhysicalPage* page : ground.parked)
    bytes += page->counted_by == &heap ? page->bytes() : 0;
  return bytes;
}

namespace {

std::uint32_t leaveAside(Ground& ground, PhysicalPage& page, Heap& heap) CISTERN_NO_TSA {
  page.parked = false;
  --heap.aside;
  ground.counters.parked_bytes -= page.bytes();
  const bool renumbered = page.last_use.generation != heap.generation;
  return std::min(renumbered ? Heap::kOldEpochs : page.last_use.epoch, heap.epoch);
}

}  // namespace

std::uint32_t unpark(Ground& ground, PhysicalPage& page, Heap& heap) noexcept {
  std::erase(ground.parked, &page);
  return leaveAside(ground, page, heap);
}

bool bringBack(Ground& ground, Heap& heap, std::vector<PhysicalPage*>* brought) CISTERN_NO_TSA {
  const auto own = std::partition(ground.parked.begin(), ground.parked.end(),
                                  [&](auto* page) { return page->counted_by != &heap; });
  const std::vector<PhysicalPage*> pages(own, ground.parked.end());
  if (pages.empty()) return false;
  if (brought) *brought = pages;
  for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
    heap.layout(kind).prepareHoles(unsigned(2 * pages.size()));
  }
  ground.parked.erase(own, ground.parked.end());
  for (PhysicalPage* page : pages) {
    View& home = *page->views.front();
    const std::uint32_t epoch = leaveAside(ground, *page, heap);
    ground.table.makeCurrent(home);
    ground.count(*page, &heap, home.range->kind);
    heap.fill(home.range->kind, holeAt(heap, *home.range, home.place()), home.place(),
              home.placeEnd(), epoch);
  }
  return true;
}

void putAside(Ground& ground, Heap& heap, std::vector<PhysicalPage*>& pages) CISTERN_NO_TSA {
  std::sort(pages.begin(), pages.end());
  const Survey survey(heap, ground.surveys, Whither::kWithinPool);
  std::vector<View*> unused;
  for (View* view : survey.freeViews()) {
    const bool one = std::binary_search(pages.begin(), pages.end(), view->page);
    if (one && view->is_home && view->page->late && view->page->mayLeave()) unused.push_back(view);
  }
  std::ranges::sort(unused, HighestFirst{});
  ground.parked.reserve(ground.parked.size() + unused.size());
  for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge})
    heap.layout(kind).prepareHoles(unsigned(2 * unused.size()));
  for (View* view : unused) {
    heap.punch(view->range->kind, *view->found.in, view->place(), view->placeEnd());
    park(ground, *view, view->last_use);
  }
}

}  // namespace cistern::pages
