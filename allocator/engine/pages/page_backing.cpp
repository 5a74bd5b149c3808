#include "allocator/engine/pages/page_backing.hpp"

#include <algorithm>
#include <map>
#include <new>
#include <unordered_set>
#include <utility>

#include "allocator/base/check.hpp"
#include "allocator/base/process.hpp"
#include "allocator/device/page_trial.hpp"
#include "allocator/engine/pages/mover.hpp"
#include "allocator/engine/pages/placing.hpp"

namespace cistern {

using namespace pages;

bool PageBacking::supportedBy(const Device& device) {
  const VirtualMemoryCapability capability = device.virtualMemory();
  return capability.supported && capability.granularity != 0 && kUnit % capability.granularity == 0;
}

PageBacking::PageBacking(Core& core)
    : core_(core), state_(core), background_([this] { return clearUpInBackground(); }) {
  state_.owner = this;
}

Background::Next PageBacking::clearUpInBackground() noexcept {
  Background::Next next = Background::Next::kNothing;
  if (!driverMayBeCalled()) return next;
  {
    const MutexLock lock(mutex_);
    next = clearUp(state_, false);
  }
  core_.memory_hooks.deliver();
  return next;
}

// Other threads may have changed all that the first attempt saw, and may have taken the pages.
Block* PageBacking::place(Heap& heap, const Request& request, PagesFrom from) {
  WantedPages wanted;
  Block* block = placeNow(heap, request, from, &wanted);
  if (wanted.units == 0) return block;
  makeSpares(heap, request.kind, wanted);
  block = placeNow(heap, request, from, nullptr);
  const MutexLock lock(mutex_);
  (void)releaseSpares(state_);
  return block;
}

// After a refusal the miss asks for the rest itself.
void PageBacking::makeSpares(Heap& heap, SizeKind kind, WantedPages wanted) {
  std::list<PhysicalPage> made;
  try {
    while (wanted.units > 0 &&
           makePage(core_, heap.memory(), std::min(wanted.units, wanted.of_page), made))
      wanted.units -= made.back().units;
  } catch (const std::bad_alloc&) {
  }
  const MutexLock lock(mutex_);
  const MutexLock heap_lock(heap.mutex());
  state_.counters.created += made.size();
  while (!made.empty()) state_.count(state_.table.adopt(made), &heap, kind);
}

namespace {

// A heap that repeats itself should be at rest. Its misses have overdrawn much since it last was,
// for two rounds without one.
bool wantsToFreeze(State& state, Heap& heap) CISTERN_REQUIRES(heap.mutex()) {
  if (without(Mechanism::kFreeze) || broken(Rule::kFreeze)) return false;
  pages::HeapNotes& notes = state.notes.of(heap);
  Rounds& rounds = heap.rounds();
  if (rounds.noteMiss() || rounds.frozen()) notes.restless.forget();
  return rounds.repeats() && notes.restless.muchOverdrawn(rounds.patience()) &&
         state.core.options.recycle == Recycle::kBudget && heap.pool().isDefault() &&
         !state.core.heaps.anyOverflow();
}

}  // namespace

// A request of a capture unmaps nothing.
Block* PageBacking::placeNow(Heap& heap, const Request& request, PagesFrom from,
                             WantedPages* wanted) {
  const MutexLock lock(mutex_);
  if ((state_.refused && isOfDevice(heap.memory())) || heap.pool().asleep) return nullptr;
  const bool recorded = request.capture != nullptr, thread = core_.options.background_thread;
  const std::size_t stale = state_.table.staleMappings().size(), most = mostStale(state_);
  // Soon there will be old mappings to remove. The stream's work on them is marked now, while the
  // stream is known to be alive.
  if (stale > most - most / 8 && !without(Mechanism::kEarlyRefresh)) state_.refresh(heap);
  // A thread that finds no time for it is helped, before the mappings that it left make each window
  // dear.
  const bool behind = !without(Mechanism::kHelpBehind) && stale > 2 * most;
  if ((!thread || behind) && !recorded) (void)clearUp(state_, true);
  if (!state_.makeRoom(heap, request)) return nullptr;
  if (!recorded) {
    const MutexLock heap_lock(heap.mutex());
    Rounds& rounds = heap.rounds();
    rounds.search();
    const std::uint64_t busy = heap.layout(SizeKind::kLarge).totals().busy_bytes;
    if (rounds.outgrowsFreeze(busy / kMiB)) rounds.thaw();
    if (wantsToFreeze(state_, heap)) rounds.planFreeze();
  }
  Block* const block = Mover(state_, heap, request, from, wanted).place();
  if (thread && isClearingDue(state_) && !background_.wake() && !recorded)
    (void)clearUp(state_, true);
  return block;
}

Block* PageBacking::placeAsBefore(Heap& heap, const Request& request) {
  const MutexLock lock(mutex_);
  return Mover(state_, heap, request, PagesFrom::kNoNew).placeAsBefore();
}

// Out of memory is no refusal of pages: the trial says which of the two it is. Pages of the host
// say nothing of the device's.
bool PageBacking::areRefused() {
  const MutexLock lock(mutex_);
  const auto isOfDevice = [](const PhysicalPage& page) { return page.kind == MemoryKind::kPages; };
  const bool known =
      state_.worked || state_.refused || std::ranges::any_of(state_.table.pages(), isOfDevice);
  if (known || !core_.answers.wasRefused()) return state_.refused;
  const Status tried = tryPage(core_.device);
  state_.worked = tried.ok();
  state_.refused = refusesPages(tried);
  return state_.refused;
}

void PageBacking::sendHome(Heap& heap) noexcept try {
  if (!heap.onPages() || without(Mechanism::kHoming)) return;
  if (!mutex_.try_lock()) return;  // a free does not wait for others' device calls
  const MutexUnlock unlock(mutex_);
  const MutexLock heap_lock(heap.mutex());
  pages::sendHome(state_, heap);
} catch (const std::bad_alloc&) {
}

void PageBacking::hold(const Block& block, HeldMemory& by, HoldCounts::Kind kind,
                       std::uint32_t capture) {
  const MutexLock lock(mutex_);
  const Pool& pool = rangeOf(block).home->pool();
  if (pool.asleep) throw PoolError(asleepText(pool));
  forEachMapping(rangeOf(block), block.address(), block.end(), [&](Mapping& mapping) {
    mutex_.assertHeld();
    if (capture != 0 && mapping.holds.graphs > 0 && mapping.capture == capture) return;
    by.mappings.push_back(&mapping);
    state_.table.hold(mapping, kind);
    if (capture != 0) mapping.capture = capture;
  });
}

// No page moves meanwhile. One that has moved away leaves a gap, as does memory that went back.
Address PageBacking::hold(const HeapSegment& segment, AddressRange what, FixedHold& by) {
  const MutexLock lock(mutex_);
  const auto& range = static_cast<const PageRange&>(segment);
  Address held_to = what.from;
  const Address to = std::min(what.to, range.deviceEnd());
  forEachMapping(range, range.placeOf(what.from), range.placeOf(to), [&](Mapping& mapping) {
    mutex_.assertHeld();
    if (!mapping.isThere() || mapping.deviceAddress() > held_to) return;
    by.mappings.push_back(&mapping);
    state_.table.hold(mapping, FixedHold::kKind);
    held_to = mapping.deviceAddress() + mapping.bytes();
  });
  const Pool& pool = range.home->pool();
  if (held_to < what.to && pool.asleep) throw PoolError(asleepText(pool));
  return std::min(held_to, what.to);
}

void PageBacking::letGo(HeldMemory& by, HoldCounts::Kind kind) noexcept {
  if (by.mappings.empty()) return;
  const MutexLock lock(mutex_);
  for (Mapping* mapping : by.mappings) state_.table.letGo(*mapping, kind);
  if (kind == FixedHold::kKind) {
    for (const Mapping* mapping : by.mappings) {
      Heap& heap = *mapping->range->home;
      const MutexLock heap_lock(heap.mutex());
      heap.offer();
    }
  }
  by.mappings.clear();
}

bool PageBacking::isHeld(const Block& block) const {
  return rangeOf(block).home->pool().isHeld() ||
         bytesIn(block, [](const Mapping& mapping) { return !mapping.page->mayLeave(); }) > 0;
}

Location PageBacking::locationOf(const Block& block) const {
  const MutexLock lock(mutex_);
  return hostBytesIn(block) > 0 ? Location::kHost : Location::kDevice;
}

std::uint64_t PageBacking::hostBytesIn(const Block& block) const {
  return bytesIn(block, [](const Mapping& mapping) {
    return mapping.isCurrent() && mapping.page->kind != MemoryKind::kPages;
  });
}

std::uint64_t PageBacking::heldBytes() const {
  const MutexLock lock(mutex_);
  return state_.table.fixedBytes();
}

// ---- Hooks for memory ---------------------------------------------------------------------------

void PageBacking::tellPresent() {
  const MutexLock lock(mutex_);
  for (const PhysicalPage& page : state_.table.pages()) {
    for (const Mapping* mapping : page.mappings) {
      if (mapping->mapped)
        core_.memory_hooks.addPresent(State::noticeOf(page, *mapping->range, mapping->unit));
    }
  }
}

void PageBacking::finish(void* range) noexcept {
  const MutexLock lock(mutex_);
  finishWithdrawal(state_, *static_cast<Mapping*>(range));
}

PageCounts PageBacking::counts() const {
  const MutexLock lock(mutex_);
  return state_.counters;
}

std::uint64_t PageBacking::asleepBytes() const {
  const MutexLock lock(mutex_);
  std::uint64_t bytes = 0;
  for (const PhysicalPage& page : state_.table.pages()) bytes += page.made ? 0 : page.bytes();
  return bytes;
}

std::size_t PageBacking::hostBytes() const {
  const MutexLock lock(mutex_);
  return sizeof(*this) + state_.table.hostBytes() + state_.notes.hostBytes();
}

// ---- Back to the device: on emptyCache, under pressure, and what is too old to keep ------------

namespace {

// The heap may be another stream's a moment later, or nobody's, if its pool comes to its end.
bool streamIsDead(Core& core, const Heap& heap) {
  const Stream stream = heap.stream();
  const KnownStreams::Look at = core.streams.look(stream);
  if (at.forgotten) return false;
  const Result<CaptureInfo> info = core.device.captureInfo(stream);
  return !info.ok() && info.error().kind == ErrorKind::kInvalidHandle;
}

}  // namespace

void PageBacking::emptyCache(const std::vector<Heap*>& heaps) {
  bool dead = false;
  core_.progress.refresh(heaps);
  for (Heap* heap : heaps) {
    const MutexLock lock(heap->mutex());
    heap->rounds().thaw();
  }
  for (Heap* heap : heaps) dead |= !emptyHeap(*heap) && streamIsDead(core_, *heap);
  // Memory that a destroyed stream has left behind is complete when the whole device is. Nothing
  // else can be asked.
  if (dead && core_.progress.completeAll(heaps)) {
    for (Heap* heap : heaps) (void)emptyHeap(*heap);
  }
  const MutexLock lock(mutex_);
  (void)releaseSpares(state_);
  if (!state_.drains.empty() && core_.options.background_thread) (void)background_.wake();
}

std::uint64_t PageBacking::releaseUnused(Heap& heap, std::uint64_t epoch) {
  const MutexLock lock(mutex_);
  (void)releaseFree(state_, heap, {.latest_epoch = epoch});
  const MutexLock heap_lock(heap.mutex());
  return heap.endedEpoch();
}

// True when nothing was left behind. Pages that were left go when their work is complete. The
// backing's lock is held only for a while at a time.
bool PageBacking::emptyHeap(Heap& heap) {
  constexpr std::uint64_t kAtATime = 256 * kUnit;
  while (heap.onPages()) {
    const MutexLock lock(mutex_);
    const Released released = releaseFree(state_, heap, {.bytes = kAtATime});
    if (released.bytes > 0) continue;
    if (released.more_later && !streamIsDead(core_, heap)) drainLater(state_, heap);
    return !released.more_later;
  }
  return true;
}

std::uint64_t PageBacking::release(const std::vector<Heap*>& heaps, std::uint64_t bytes,
                                   bool only_of_device) {
  const MutexLock lock(mutex_);
  std::uint64_t released = 0;
  const auto hasAny = [only_of_device](Heap& heap) {
    const MutexLock heap_lock(heap.mutex());
    return heap.onPages() && (!only_of_device || heap.hasDeviceMemory());
  };
  for (Heap* heap : heaps) {
    if (released >= bytes) return released;
    if (!hasAny(*heap)) continue;
    const ReleaseRule rule{.bytes = bytes - released, .only_of_device = only_of_device};
    released += releaseFree(state_, *heap, rule).bytes;
  }
  return released + releaseSpares(state_);
}

// A page's age is counted in its heap's epochs, one of which ends each time that this looks.
std::uint64_t PageBacking::collectGarbage(const std::vector<Heap*>& all, std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  std::uint64_t age = 0, count = 0;
  std::vector<std::pair<Heap*, std::uint64_t>> heaps;  // and their present epochs
  for (Heap* heap : all) {
    if (!heap->onPages()) continue;
    core_.progress.refresh(*heap);
    const MutexLock heap_lock(heap->mutex());
    const FreePageScan scan(*heap, state_.number);
    const std::uint64_t now = heap->completion().now();
    for (const Mapping* mapping : scan.freeMappings()) {
      if (!mapping->page->mayLeave()) continue;
      age += now - mapping->last_use;
      ++count;
    }
    heaps.emplace_back(heap, now);
  }
  const std::uint64_t mean = age / std::max<std::uint64_t>(count, 1);
  const std::uint64_t reserved = core_.limit.reserved();
  std::uint64_t given = 0;
  for (const auto& [heap, now] : heaps) {
    if (reserved - given <= bytes) break;
    if (now < mean) continue;
    const ReleaseRule rule{.latest_epoch = now - mean, .bytes = reserved - given - bytes};
    given += releaseFree(state_, *heap, rule).bytes;
  }
  return given;
}

// ---- What a refused request lacks ---------------------------------------------------------------

namespace {

using Pages = std::unordered_set<const PhysicalPage*>;

// Returns the bytes of those that are of use to the request, but stay: pages of its pool that a
// graph holds move within the pool.
std::uint64_t addFree(State& state, Heap& heap, const Request& request, MemoryKind kind,
                      bool incomplete, Pages& free) {
  const MutexLock lock(heap.mutex());
  const bool same_pool = &heap.pool() == request.pool;
  std::uint64_t stay = 0;
  const FreePageScan scan(heap, state.number);
  for (const Mapping* mapping : scan.freeMappings()) {
    const bool unused = incomplete || heap.completion().complete(mapping->last_use);
    if (!unused || !mayHold(kind, mapping->page->kind)) continue;
    if (!mapping->page->mayLeave() && !same_pool) continue;
    if (!mapping->page->mayLeave()) stay += mapping->page->bytes();
    free.insert(mapping->page);
  }
  return stay;
}

}  // namespace

PageBacking::Lack PageBacking::lackOf(Heap* own, const Request& request,
                                      const std::vector<Heap*>& heaps, MemoryKind kind,
                                      bool incomplete) {
  const MutexLock lock(mutex_);
  Pages free;
  std::uint64_t stay = 0;
  for (Heap* heap : heaps) {
    if (heap->onPages()) stay += addFree(state_, *heap, request, kind, incomplete, free);
  }
  Lack lack{roundUp(request.rounded(), kUnit), 0};  // behind all blocks there is always room
  for (const PhysicalPage* page : free) lack.free += page->bytes();
  lack.free -= stay;
  if (own != nullptr && own->onPages()) {
    const MutexLock heap_lock(own->mutex());
    const auto window = bestWindow(*own, request, {.gone = &free}, state_.number);
    if (window) lack.growth = std::min(lack.growth, window->units_to_map * kUnit);
  }
  lack.growth -= std::min(lack.growth, stay);
  return lack;
}

// Memory that queued work may still use stays mapped if the device will not say that the work is
// complete.
void PageBacking::shutDown(bool driver) noexcept {
  if (!driver) return;
  const MutexLock lock(mutex_);
  if (state_.table.ranges().empty()) return;
  Device& device = core_.device;
  const RelaxedCaptureMode relaxed(device);
  if (!state_.table.pages().empty() && !insist([&] { return device.synchronizeDevice(); })) return;
  for (const PhysicalPage& page : state_.table.pages()) {
    for (const Mapping* mapping : page.mappings) {
      if (mapping->mapped)
        insist([&] { return device.unmap(mapping->deviceAddress(), mapping->bytes()); });
    }
    if (page.made) insist([&] { return device.releasePage(page.handle); });
  }
  for (const PageRange& range : state_.table.ranges()) {
    insist([&] { return device.freeReservation(range.device_base, range.reserved_bytes); });
  }
}

// ---- What always holds at rest: see page.hpp and placing.hpp ------------------------------------

namespace {

// Memory has a page behind it, which is asleep in a heap that sleeps, and a hole has none. Where a
// heap sleeps its free memory has become holes, and there may be a page behind them.
void auditBlock(const PageRange& range, const Block& block) {
  const Heap& heap = *range.home;
  heap.mutex().assertHeld();
  CISTERN_CHECK(!heap.asleep() || !block.isFree());
  if (heap.asleep() && block.isHole()) return;
  const std::uint32_t end = range.unitAt(block.end() + kUnit - 1);
  for (std::uint32_t unit = range.unitAt(block.address()); unit < end; ++unit) {
    const Mapping* const mapping = range.slots[unit];
    const bool there = mapping != nullptr && mapping->isCurrent();
    CISTERN_CHECK(there != block.isHole());
    const bool within =
        there && mapping->place() >= block.address() && mapping->placeEnd() <= block.end();
    const bool held = heap.pool().isHeld() || (there && mapping->holds.fixed != 0);
    CISTERN_CHECK(!heap.withdrawn() || !block.isFree() || !within || held);
  }
}

}  // namespace

void PageBacking::audit(std::uint64_t reserved) const {
  mutex_.assertHeld();
  state_.table.audit();
  for (const PageRange& range : state_.table.ranges()) {
    range.home->mutex().assertHeld();
    for (const Block* b = range.first; b; b = b->next) auditBlock(range, *b);
  }
  std::uint64_t bytes = 0, host = 0;
  std::map<Heap*, std::pair<std::uint64_t, std::uint64_t>> host_of;  // pages, and their bytes
  for (const PhysicalPage& page : state_.table.pages()) {
    const bool on_host = page.kind != MemoryKind::kPages;
    bytes += page.made ? page.bytes() : 0;
    host += on_host ? page.bytes() : 0;
    CISTERN_CHECK(!page.asleep || page.current->range->home->pool().asleep);
    if (page.counted_by) {
      host_of[page.counted_by].first += on_host ? 1 : 0;
      host_of[page.counted_by].second += on_host ? page.bytes() : 0;
    }
    if (const Heap* heap = page.current ? page.current->range->home : page.counted_by)
      CISTERN_CHECK(mayHold(heap->memory(), page.kind));
  }
  for (const auto& [heap, on_host] : host_of) {
    heap->mutex().assertHeld();
    CISTERN_CHECK(std::pair(std::uint64_t{heap->host_pages}, heap->host_bytes) == on_host);
  }
  CISTERN_CHECK(reserved == bytes && reserved - host <= state_.core.limit.reserved());
  CISTERN_CHECK(host <= state_.core.hostPageBytes());
}

}  // namespace cistern
