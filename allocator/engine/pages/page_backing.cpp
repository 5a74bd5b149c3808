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
    : core_(core), state_(core), background_([this] {
        if (!driverMayBeCalled()) return Background::Next::kNothing;
        const MutexLock lock(mutex_);
        return clearUp(state_, false);
      }) {}

Block* PageBacking::place(Heap& heap, const Request& request, PagesFrom from) {
  Mover::Wanted wanted;
  Block* const block = placeAtOnce(heap, request, from, wanted);
  return wanted.units == 0 ? block : placeInHostPages(heap, request, from, wanted);
}

// Other threads may have changed all that the first attempt saw.
Block* PageBacking::placeInHostPages(Heap& heap, const Request& request, PagesFrom from,
                                     Mover::Wanted wanted) {
  std::list<PhysicalPage> made;
  struct AtEnd {
    ~AtEnd() { of.giveBack(made, heap, kind); }
    PageBacking& of;
    std::list<PhysicalPage>& made;
    Heap& heap;
    const SizeKind kind;
  } const at_end{*this, made, heap, request.kind};
  makeHostPages(pagesOf(heap), wanted, made);
  const MutexLock lock(mutex_);
  if (heap.pool().asleep || !state_.makeRoom(heap, request)) return nullptr;
  return Mover(state_, heap, request, from, &made).place();
}

// After a refusal the miss asks for the rest itself, and notes the answer.
void PageBacking::makeHostPages(PageKind kind, Mover::Wanted wanted,
                                std::list<PhysicalPage>& made) {
  for (; wanted.units > 0; wanted.units -= made.back().units) {
    const std::uint32_t units = std::min(wanted.units, wanted.of_page);
    if (!makePage(core_, kind, units, made, nullptr)) return;
  }
}

// Pages that the miss had no use for. One that the device does not take back is counted as the
// heap's.
void PageBacking::giveBack(std::list<PhysicalPage>& made, Heap& heap, SizeKind kind) noexcept {
  while (!made.empty()) {
    const PhysicalPage& page = made.front();
    if (core_.device.releasePage(page.handle)) {
      core_.noteReturned(page.kind, page.bytes());
      made.pop_front();
      continue;
    }
    const MutexLock lock(mutex_);
    PhysicalPage& spare = state_.table.adopt(made);
    const MutexLock heap_lock(heap.mutex());
    state_.count(spare, &heap, kind);
  }
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
Block* PageBacking::placeAtOnce(Heap& heap, const Request& request, PagesFrom from,
                                Mover::Wanted& wanted) {
  const MutexLock lock(mutex_);
  if (state_.refused || heap.pool().asleep) return nullptr;
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
  Mover mover(state_, heap, request, from);
  Block* const block = mover.place();
  wanted = mover.wanted();
  if (thread && isClearingDue(state_) && !background_.wake() && !recorded)
    (void)clearUp(state_, true);
  return block;
}

Block* PageBacking::placeAsBefore(Heap& heap, const Request& request) {
  const MutexLock lock(mutex_);
  return Mover(state_, heap, request, PagesFrom::kNoNew).placeAsBefore();
}

// Out of memory is no refusal of pages: the trial says which of the two it is.
bool PageBacking::areRefused() {
  const MutexLock lock(mutex_);
  const bool known = state_.worked || state_.refused || !state_.table.pages().empty();
  if (known || !state_.answers.wasRefused()) return state_.refused;
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

void PageBacking::letGo(HeldMemory& by, HoldCounts::Kind kind) noexcept {
  if (by.mappings.empty()) return;
  const MutexLock lock(mutex_);
  for (Mapping* mapping : by.mappings) state_.table.letGo(*mapping, kind);
  by.mappings.clear();
}

bool PageBacking::isHeld(const Block& block) const {
  bool held = false;
  forEachMapping(rangeOf(block), block.address(), block.end(),
                 [&](const Mapping& mapping) { held |= !mapping.page->mayLeave(); });
  return held;
}

Location PageBacking::locationOf(const Block& block) const {
  const MutexLock lock(mutex_);
  return hostBytesIn(block) > 0 ? Location::kHost : Location::kDevice;
}

std::uint64_t PageBacking::hostBytesIn(const Block& block) const {
  return bytesIn(block, [](const Mapping& mapping) {
    return mapping.isCurrent() && mapping.page->kind != PageKind::kDevice;
  });
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

bool streamIsDead(Core& core, const Heap& heap) {
  const KnownStreams::Look at = core.streams.look(heap.stream());
  if (at.forgotten) return false;
  const Result<CaptureInfo> info = core.device.captureInfo(heap.stream());
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
void PageBacking::collectGarbage(const std::vector<Heap*>& all, std::uint64_t bytes) {
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
  for (const auto& [heap, now] : heaps) {
    const std::uint64_t reserved = core_.limit.reserved();
    if (reserved <= bytes) return;
    if (now >= mean) (void)releaseFree(state_, *heap, {now - mean, reserved - bytes});
  }
}

// ---- What a refused request lacks ---------------------------------------------------------------

namespace {

using Pages = std::unordered_set<const PhysicalPage*>;

// Returns the bytes of those that are of use to the request, but stay: pages of its pool that a
// graph holds move within the pool.
std::uint64_t addFree(State& state, Heap& heap, const Request& request, PageKind kind,
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
                                      const std::vector<Heap*>& heaps, PageKind kind,
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

// The bytes that the current mapping adds to the memory of a heap that is awake.
std::uint64_t backedBy(const Mapping& current) {
  const Heap& heap = *current.range->home;
  heap.mutex().assertHeld();
  return heap.asleep() ? 0 : current.bytes();
}

// In a heap that sleeps what is in use has a page, which may be asleep, and nothing is free.
void auditAsleep(const PageRange& range, const Block& block) {
  CISTERN_CHECK(!block.isFree());
  if (block.isHole()) return;
  std::uint32_t unit = range.unitAt(block.address());
  for (; unit < range.unitAt(block.end() + kUnit - 1); ++unit) {
    const Mapping* const mapping = range.slots[unit];
    CISTERN_CHECK(mapping != nullptr && mapping->isCurrent());
  }
}

}  // namespace

void PageBacking::audit(std::uint64_t reserved) const {
  mutex_.assertHeld();
  state_.table.audit();
  std::uint64_t backed = 0;
  for (const PageRange& range : state_.table.ranges()) {
    range.home->mutex().assertHeld();
    for (const Block* b = range.first; b; b = b->next) {
      if (range.home->asleep()) {
        auditAsleep(range, *b);
        continue;
      }
      if (!b->isHole()) backed += b->bytes();
      const bool withdrawn = b->isFree() && range.home->withdrawn();
      forEachMapping(range, b->address(), b->end(), [&](const Mapping& mapping) {
        const bool within = mapping.place() >= b->address() && mapping.placeEnd() <= b->end();
        CISTERN_CHECK(!withdrawn || !within);
      });
      std::uint32_t unit = range.unitAt(b->address());
      for (; unit < range.unitAt(b->end() + kUnit - 1); ++unit) {
        const Mapping* mapping = range.slots[unit];
        CISTERN_CHECK(b->isHole() ? mapping == nullptr || !mapping->isCurrent()
                                  : mapping != nullptr && mapping->isCurrent());
      }
    }
  }
  std::uint64_t bytes = 0, host = 0;
  std::map<Heap*, std::pair<std::uint64_t, std::uint64_t>> host_of;  // pages, and their bytes
  for (const PhysicalPage& page : state_.table.pages()) {
    bytes += page.made ? page.bytes() : 0;
    CISTERN_CHECK(!page.asleep || page.current->range->home->pool().asleep);
    if (page.counted_by) {
      const bool on_host = page.kind != PageKind::kDevice;
      host_of[page.counted_by].first += on_host ? 1 : 0;
      host_of[page.counted_by].second += on_host ? page.bytes() : 0;
    }
    if (page.current) backed -= backedBy(*page.current);
    if (page.kind != PageKind::kDevice) host += page.bytes();
    if (const Heap* heap = page.current ? page.current->range->home : page.counted_by)
      CISTERN_CHECK(mayHold(pagesOf(*heap), page.kind));
  }
  for (const auto& [heap, on_host] : host_of) {
    heap->mutex().assertHeld();
    CISTERN_CHECK(std::pair(std::uint64_t{heap->host_pages}, heap->host_bytes) == on_host);
  }
  CISTERN_CHECK(reserved == bytes && reserved - host <= state_.core.limit.reserved());
  CISTERN_CHECK(host <= state_.core.hostPageBytes());
  CISTERN_CHECK(backed == 0);
}

}  // namespace cistern
