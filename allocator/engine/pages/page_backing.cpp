#include "allocator/engine/pages/page_backing.hpp"

#include <algorithm>

#include "allocator/base/check.hpp"
#include "allocator/base/process.hpp"
#include "allocator/engine/pages/mover.hpp"
#include "allocator/engine/pages/parking.hpp"
#include "allocator/engine/pages/release.hpp"

namespace cistern {

using namespace pages;

namespace {

/// Addresses that a range reserves, as a multiple of the device's memory; half as many where the
/// device refuses, and so on.
constexpr std::uint64_t kReservedTimes = 2;
constexpr std::uint64_t kMostReserved = kTiB;  // the layout counts grains in 32 bits
constexpr std::uint64_t kExtendUnits = 64;     // at least so many at a time
constexpr std::uint64_t kRoomBeyond = 16;      // behind a request, for a page larger than its rest

std::uint64_t unitsFor(std::uint64_t bytes) { return (bytes + kUnit - 1) / kUnit; }

}  // namespace

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
  if (ground_.table.staleViews() > mostStale() / 2) ground_.progress.refresh(heap);
  if (!ground_.options.background_thread && !recorded) tidyUp();
  if (ground_.orphans > 0 && !recorded) dropOrphans();
  if (!makeRoom(heap, request) && rangeFor(heap, request.kind) == nullptr) return nullptr;
  Block* block = Mover(ground_, heap, request, from).serve();
  const bool tidy = ground_.options.background_thread && untidy();
  if (tidy && !background_.wake() && !recorded) tidyUp();
  return block;
}

// ---- Ranges ------------------------------------------------------------------------------------

PageRange* PageBacking::rangeFor(Heap& heap, SizeKind kind) const {
  const auto& ranges = ground_.table.ranges();
  for (auto it = ranges.rbegin(); it != ranges.rend(); ++it) {
    if ((*it)->home == &heap && (*it)->kind == kind) return it->get();
  }
  return nullptr;
}

// There must be addresses for the whole request behind what was ever used.
bool PageBacking::makeRoom(Heap& heap, const Request& request) {
  const std::uint64_t beyond = std::max(kRoomBeyond, ground_.options.page_size / kUnit);
  const std::uint64_t need = unitsFor(request.rounded()) + beyond;
  PageRange* range = rangeFor(heap, request.kind);
  if (range && range->units() - range->touched >= need) return true;
  if (range) {
    const std::uint64_t most = range->reserved_bytes / kUnit - range->units();
    const std::uint64_t lacking = need - (range->units() - range->touched);
    if (lacking <= most) {
      extend(*range, std::min(most, std::max(lacking, kExtendUnits)));
      return true;
    }
  }
  range = openRange(heap, request.kind, need * kUnit);
  if (range == nullptr) return false;
  extend(*range, std::max(need, std::min(kExtendUnits, range->reserved_bytes / kUnit)));
  return true;
}

PageRange* PageBacking::openRange(Heap& heap, SizeKind kind, std::uint64_t least) {
  // Many heaps share what addresses there are: each range more is content with less.
  const std::uint64_t times = kReservedTimes * ground_.device_total;
  const std::uint64_t wanted = roundUp(times / (1 + ground_.table.ranges().size() / 8), kUnit);
  std::uint64_t bytes = std::clamp(wanted, least, std::max(least, kMostReserved));
  Result<Address> base = ground_.device.reserve(bytes);
  while (!base && bytes / 2 >= least) {
    bytes = roundUp(bytes / 2, kUnit);
    base = ground_.device.reserve(bytes);
  }
  ground_.noteAnswer(base);
  if (!base) return nullptr;
  try {
    PageRange& range = ground_.table.addRange();
    range.base = ground_.places.fetch_add(bytes, std::memory_order_relaxed);
    range.device_base = base.value();
    range.reserved_bytes = bytes;
    range.kind = kind;
    range.home = &heap;
    range.heap.store(&heap, std::memory_order_release);
    return &range;
  } catch (...) {
    (void)ground_.device.freeReservation(base.value(), bytes);
    throw;
  }
}

// All that may fail comes before the layout knows.
void PageBacking::extend(PageRange& range, std::uint64_t units) {
  const Address from = range.device_base + range.bytes;
  const std::size_t slots = range.slots.size() + units;
  // Seldom moved: what was never touched takes no memory of the host.
  if (slots > range.slots.capacity())
    range.slots.reserve(std::min<std::size_t>(4 * slots, range.reserved_bytes / kUnit));
  const AddressRange own{range.device_base, range.device_base + range.reserved_bytes};
  ground_.segments.extend(range, own, from, from + units * kUnit);
  const MutexLock lock(range.home->mutex());
  range.home->layout(range.kind).extend(range, std::uint32_t(units * kUnitGrains));
  range.slots.resize(range.slots.size() + units, nullptr);
}

// ---- Giving back -------------------------------------------------------------------------------

// The backing's lock is held for a while at a time only; what is read outside never changes.
void PageBacking::emptyCache(const std::vector<Heap*>& heaps) CISTERN_NO_TSA {
  bool dead = false;
  for (Heap* heap : heaps) {
    if (!heap->onPages()) continue;
    dead |= !emptyHeap(*heap) && streamIsDead(*heap);
  }
  // What a destroyed stream has left behind is complete when the whole device is: there is nothing
  // else to ask.
  if (dead && ground_.progress.completeAll(heaps)) {
    for (Heap* heap : heaps) {
      if (heap->onPages()) (void)emptyHeap(*heap);
    }
  }
  const MutexLock lock(mutex_);
  dropOrphans();
  while (PhysicalPage* spare = ground_.table.spares()) {
    if (!ground_.release(*spare)) break;
  }
  if (!drains_.empty() && ground_.options.background_thread) (void)background_.wake();
}

std::uint64_t PageBacking::release(const std::vector<Heap*>& heaps, std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  std::uint64_t released = 0;
  for (Heap* heap : heaps) {
    if (released >= bytes) break;
    if (heap->onPages())
      released += releaseFree(ground_, *heap, {UINT32_MAX, bytes - released}).bytes;
  }
  return released;
}

// True when nothing was left behind. What was goes when its work is complete.
bool PageBacking::emptyHeap(Heap& heap) {
  constexpr std::uint64_t kAtATime = 256 * kUnit;  // others may want the lock
  while (true) {
    const MutexLock lock(mutex_);
    const Released released = releaseFree(ground_, heap, {UINT32_MAX, kAtATime});
    if (released.bytes > 0) continue;
    if (released.more_later && !streamIsDead(heap)) drainLater(heap);
    return !released.more_later;
  }
}

bool PageBacking::streamIsDead(const Heap& heap) CISTERN_NO_TSA {
  const Stream stream = heap.stream();
  const auto refused = [&]() CISTERN_NO_TSA {
    const Result<CaptureInfo> info = ground_.device.captureInfo(stream);
    return !info.ok() && info.error().kind == ErrorKind::kInvalidHandle;
  };
  return ground_.streams.ask(stream, refused, [](const SharedStreamEnd&) { return false; });
}

// Pages whose way back was barred when a miss was undone: mapped, but nowhere in use.
void PageBacking::dropOrphans() noexcept {
  for (View* view = ground_.table.oldestStale(); view && ground_.orphans > 0;) {
    View* const next = view->beside.younger;
    if (view->page->current == nullptr && !view->page->parked) {
      if (!ground_.device.unmap(view->deviceAddress(), view->bytes())) return;
      ground_.table.removeView(*view);
      --ground_.orphans;
    }
    view = next;
  }
}

void PageBacking::drainLater(Heap& heap) {
  ground_.progress.markNow(heap);
  const MutexLock lock(heap.mutex());
  std::erase_if(drains_, [&](const Drain& drain) { return drain.heap == &heap; });
  EpochMark until = heap.markNow();
  if (!heap.completion.freed) --until.epoch;  // nothing is stamped with the present one
  drains_.push_back({&heap, until});
}

// A page's age is counted in its heap's epochs, one of which ends each time that this looks.
void PageBacking::collectGarbage(std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  if (ground_.limit.reserved() <= bytes) return;
  std::uint64_t age = 0, count = 0;
  std::vector<Heap*> heaps = ground_.heaps.all();
  std::erase_if(heaps, [](const Heap* heap) { return !heap->onPages(); });
  for (Heap* heap : heaps) {
    ground_.progress.refresh(*heap);
    const MutexLock heap_lock(heap->mutex());
    (void)bringBack(ground_, *heap);
    const Survey survey(*heap, ground_.surveys, Whither::kAnywhere);
    for (const View* view : survey.freeViews()) age += heap->epoch - view->found.in->epoch;
    count += survey.freeViews().size();
  }
  if (count == 0) return;
  const std::uint64_t mean = age / count;
  for (Heap* heap : heaps) {
    const std::uint64_t reserved = ground_.limit.reserved();
    if (reserved <= bytes) return;
    const std::uint32_t epoch = epochOf(*heap);
    if (epoch < mean) continue;
    (void)releaseFree(ground_, *heap, {std::uint32_t(epoch - mean), reserved - bytes});
  }
}

std::uint32_t PageBacking::epochOf(Heap& heap) {
  const MutexLock lock(heap.mutex());
  return heap.epoch;
}

// ---- The background ----------------------------------------------------------------------------

std::size_t PageBacking::mostStale() const {
  constexpr std::size_t kOfEachPage = 2, kLeast = 64;
  return ground_.table.pages().size() * kOfEachPage + kLeast;
}

bool PageBacking::untidy() const {
  return !drains_.empty() || ground_.table.staleViews() > mostStale();
}

// Without a thread: at the next miss.
void PageBacking::tidyUp() noexcept {
  if (!untidy()) return;
  const BackgroundAccount account;
  ground_.clearing_up = true;
  try {
    (void)drain();
    (void)retireViews(ground_, mostStale(), SIZE_MAX);
  } catch (const std::bad_alloc&) {
    // The host is short of memory: the next miss does it.
  }
  ground_.clearing_up = false;
}

Background::Next PageBacking::tidySome() {
  if (!driverMayBeCalled()) return Background::Next::kNothing;
  const BackgroundAccount account;
  const MutexLock lock(mutex_);
  ground_.clearing_up = true;
  const Background::Next next = tidyPiece();
  ground_.clearing_up = false;
  return next;
}

Background::Next PageBacking::tidyPiece() noexcept {
  constexpr std::size_t kAtATime = 8;  // others may want the lock
  try {
    const bool drained = drain();
    const bool retired = retireViews(ground_, mostStale(), kAtATime) > 0;
    if (!untidy()) return Background::Next::kNothing;
    return drained || retired ? Background::Next::kMore : Background::Next::kLater;
  } catch (const std::bad_alloc&) {
    return Background::Next::kLater;
  }
}

// Gives back what emptyCache found still in use. True when something went.
bool PageBacking::drain() {
  constexpr std::uint64_t kAtATime = 64 * kUnit;  // others may want the lock
  bool any = false;
  std::erase_if(drains_, [&](const Drain& drain) CISTERN_NO_TSA {
    ReleaseRule rule{UINT32_MAX, kAtATime};
    {
      ground_.refresh(*drain.heap);
      const MutexLock lock(drain.heap->mutex());
      if (!drain.heap->complete(drain.until)) return false;
      const bool renumbered = drain.until.generation != drain.heap->generation;
      rule.latest_epoch = renumbered ? Heap::kOldEpochs : drain.until.epoch;
    }
    const Released released = releaseFree(ground_, *drain.heap, rule);
    any |= released.bytes > 0;
    return !released.more_later && released.bytes < kAtATime;
  });
  return any;
}

// ---- The rest ----------------------------------------------------------------------------------

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
      rangeOf(*s->first).most_backed = rangeOf(*s->first).moved = 0;
    }
  }
  return true;
}

PageCounts PageBacking::counts() const CISTERN_NO_TSA {
  const Counters& c = ground_.counters;
  return {c.created.load(), c.recycled.load(), c.revived.load(), c.retired.load(),
          c.returned.load()};
}

std::size_t PageBacking::hostBytes() const {
  const MutexLock lock(mutex_);
  return sizeof(*this) + ground_.table.hostBytes() + ground_.donors.hostBytes() +
         ground_.mover.hostBytes() +
         (ground_.surveys.views.capacity() + ground_.parked.capacity()) * sizeof(View*);
}

std::string PageBacking::lastDeviceError() const {
  const MutexLock lock(mutex_);
  return ground_.last_error;
}

void PageBacking::audit(std::uint64_t reserved) const CISTERN_NO_TSA {
  ground_.table.audit();
  CISTERN_CHECK(reserved == ground_.table.bytes() && reserved <= ground_.limit.reserved());
  std::uint64_t backed = 0;
  for (const auto& range : ground_.table.ranges()) {
    for (const Block* b = range->first; b; b = b->next) {
      if (!b->isHole()) backed += b->bytes();
      std::uint32_t unit = range->unitAt(b->address());
      for (; unit < range->unitAt(b->end() + kUnit - 1); ++unit) {
        const View* view = range->slots[unit];
        CISTERN_CHECK(b->isHole() ? view == nullptr || !view->isCurrent()
                                  : view != nullptr && view->isCurrent());
      }
    }
  }
  std::size_t parked = 0;
  std::uint64_t parked_bytes = 0;
  for (const PhysicalPage* page : ground_.table.pages()) {
    if (page->current) backed -= page->bytes();
    if (!page->parked) continue;
    ++parked;
    parked_bytes += page->bytes();
    const View& home = *page->views.front();
    CISTERN_CHECK(page->current == nullptr && page->late && page->mayLeave() && !page->spare);
    CISTERN_CHECK(home.accessible && home.range->home == page->counted_by);
  }
  CISTERN_CHECK(backed == 0);
  CISTERN_CHECK(parked == ground_.parked.size());
  CISTERN_CHECK(parked_bytes == ground_.counters.parked_bytes);
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
