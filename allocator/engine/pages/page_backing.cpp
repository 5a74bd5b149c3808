#include "allocator/engine/pages/page_backing.hpp"

#include <algorithm>

#include "allocator/engine/pages/mover.hpp"

namespace cistern {

using namespace pages;

bool PageBacking::supportedBy(const Device& device) {
  const VirtualMemoryCapability capability = device.virtualMemory();
  return capability.supported && capability.granularity != 0 && kUnit % capability.granularity == 0;
}

PageBacking::PageBacking(const Surroundings& surroundings)
    : ground_(surroundings), background_([this] { return tidySome(); }) {}

Block* PageBacking::serve(Heap& heap, const Request& request, PagesFrom from) {
  const MutexLock lock(mutex_);
  const bool recorded = request.recording != nullptr;  // a capture unmaps nothing
  // Soon there will be old views to remove: what this stream has done with them is marked while it
  // is known to be alive.
  constexpr std::size_t kPartLeft = 8;
  const std::size_t many = mostStale() - mostStale() / kPartLeft;
  if (ground_.table.staleViews() > many && !without(Mechanism::kEarlyRefresh))
    ground_.progress.refresh(heap);
  // A thread that finds no time for it is helped before what it left makes each window dear.
  const bool behind =
      !without(Mechanism::kHelpBehind) && ground_.table.staleViews() > 2 * mostStale();
  if ((!ground_.options.background_thread || behind) && !recorded) tidyUp();
  if (ground_.orphans > 0 && !recorded) dropOrphans();
  if (!makeRoom(heap, request) && rangeFor(heap, request.kind) == nullptr) return nullptr;
  Block* block = Mover(ground_, heap, request, from).serve();
  const bool tidy = ground_.options.background_thread && untidy();
  if (tidy && !background_.wake() && !recorded) tidyUp();
  return block;
}

template <class Visit>
void PageBacking::forEachView(const Block& block, Visit visit) {
  const PageRange& range = rangeOf(block);
  const std::uint32_t end = range.unitAt(block.end() + kUnit - 1);
  for (std::uint32_t unit = range.unitAt(block.address()); unit < end;) {
    View& view = *range.slots[unit];
    visit(view);
    unit = view.endUnit();
  }
}

void PageBacking::pin(const Block& block, std::uint32_t number, Pins& pins) {
  const MutexLock lock(mutex_);
  forEachView(block, [&](View& view) CISTERN_NO_TSA {
    if (view.pins > 0 && view.pinned_by == number) return;
    pins.views.push_back(&view);
    view.pinned_by = number;
    ground_.table.pin(view);
  });
}

void PageBacking::unpin(const std::vector<View*>& views) noexcept {
  const MutexLock lock(mutex_);
  for (View* view : views) ground_.table.unpin(*view);
}

bool PageBacking::pinned(const Block& block) {
  bool held = false;
  forEachView(block, [&](const View& view) { held |= !view.page->mayLeave(); });
  return held;
}

// What it had for another pool is no measure of what it may take for the next.
bool PageBacking::forgets(Heap& heap) CISTERN_NO_TSA {
  const MutexLock lock(mutex_);
  const MutexLock heap_lock(heap.mutex());
  for (const PhysicalPage* page : ground_.parked) {
    if (page->counted_by == &heap) return false;
  }
  for (const View* view = ground_.table.oldestStale(); view; view = view->beside.younger) {
    if (view->range->home == &heap && !heap.complete(view->last_use)) return false;
  }
  for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
    for (const Segment* s = heap.layout(kind).segments(); s; s = s->next) {
      rangeOf(*s->first).most_backed = 0;
    }
  }
  return true;
}

bool PageBacking::leftInUse(Heap& heap, EpochMark until) const noexcept CISTERN_NO_TSA {
  const auto in_use = [&](const View* view) CISTERN_NO_TSA {
    if (view->isCurrent() || view->range->home != &heap || heap.complete(view->last_use))
      return false;
    const EpochMark use = view->last_use;
    return use.generation != until.generation || use.epoch <= until.epoch;
  };
  const auto& pages = ground_.table.pages();
  return std::any_of(pages.begin(), pages.end(), [&](const PhysicalPage* page) {
    return std::any_of(page->views.begin(), page->views.end(), in_use);
  });
}

PageCounts PageBacking::counts() const CISTERN_NO_TSA {
  const Counters& c = ground_.counters;
  return {c.created.load(), c.recycled.load(), c.revived.load(), c.retired.load(),
          c.returned.load()};
}

std::size_t PageBacking::hostBytes() const {
  const MutexLock lock(mutex_);
  return sizeof(*this) + ground_.table.hostBytes() + ground_.parked.capacity() * sizeof(View*);
}

std::string PageBacking::lastDeviceError() const {
  const MutexLock lock(mutex_);
  return ground_.last_error;
}

namespace {

// Nobody can ask for it again later, so a device that says no is asked once more.
template <class Call>
bool insist(Call call) {
  return call().ok() || call().ok();
}

}  // namespace

// What queued work may still use stays mapped if the device will not say that it is complete.
void PageBacking::shutDown(bool driver) noexcept CISTERN_NO_TSA {
  if (!driver) return;
  const MutexLock lock(mutex_);
  Device* const device_there = &ground_.device;
  Device& device = *device_there;
  const RelaxedCaptureMode relaxed(device);
  if (!ground_.table.pages().empty() && !insist([&] { return device.synchronizeDevice(); })) return;
  for (const PhysicalPage* page : ground_.table.pages()) {
    for (const View* view : page->views) {
      insist([&] { return device.unmap(view->deviceAddress(), view->bytes()); });
    }
    insist([&] { return device.releasePage(page->handle); });
  }
  for (const auto& range : ground_.table.ranges()) {
    insist([&] { return device.freeReservation(range->device_base, range->reserved_bytes); });
  }
}

}  // namespace cistern
