// Finds the pages for one miss.
#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

#include "allocator/engine/pages/mover.hpp"
#include "allocator/engine/pages/placing.hpp"
#include "allocator/engine/pages/release.hpp"

namespace cistern::pages {
namespace {

constexpr std::size_t kNoLimit = SIZE_MAX;
/// A capture may move about kMovedInCapture times the heap's memory. All that it has moved is
/// counted in bytes. Memory that it may still move is counted in pages, of 8 MiB each.
constexpr std::uint64_t kMovedInCapture = 64, kPageOfCapture = 4 * kUnit;

/// Free pages that may be taken. Pages of one size in units go in a fixed order. The page of the
/// free block that is unused for longest goes first, then that of the smallest block. Then comes
/// the page of the oldest range, then the highest.
class Donors {
 public:
  void add(Mapping& mapping) {
    const Block& in = *mapping.found.in;
    const std::uint32_t epoch = without(Mechanism::kOldestFirst) ? 0 : in.epoch;
    const std::uint32_t granules = without(Mechanism::kSmallestBlock) ? 0 : in.granules;
    of_units_[mapping.units()].push(
        {~epoch, ~granules, ~mapping.range->base, mapping.unit, &mapping});
  }
  bool empty() const { return of_units_.empty(); }
  /// The largest that is no larger than `fitting` units; failing that, the smallest that is no
  /// larger than `most`. `most` is no less than `fitting`. Null when there is neither.
  Mapping* take(std::uint32_t fitting, std::uint32_t most) {
    auto size = of_units_.upper_bound(without(Mechanism::kLargestFitting) ? 0 : fitting);
    if (size == of_units_.begin() && (empty() || size->first > most)) return nullptr;
    if (size != of_units_.begin()) --size;
    Mapping* const mapping = std::get<Mapping*>(size->second.top());
    size->second.pop();
    if (size->second.empty()) of_units_.erase(size);
    return mapping;
  }

 private:
  using Donor = std::tuple<std::uint32_t, std::uint32_t, Address, std::uint32_t, Mapping*>;
  std::map<std::uint32_t, std::priority_queue<Donor>> of_units_;
};

}  // namespace

// Free pages come before new ones.
bool Mover::fillGaps(bool waits) {
  unordered_ = false;
  next_spare_.reset();
  mixes_ = mayMix();
  pressed_ = false;
  asks_all_ = mixes_ && heap_.overflow();  // pages of the host cost more than any search
  const bool recycles = state_.recycles();
  if (recycles && !frozen_) giveBackSmall();
  if (recycles && movesOwn(state_, request_))
    takeFrom(heap_, Which::kAny, request_.capture ? movableInCapture() : kNoLimit);
  if (recycles && !frozen_) {
    takeFromOthers(Which::kComplete);
    if (waits) takeFromOthers(Which::kAny);
    if (unordered_) return false;
  }
  if (mixes_) takeFromBeside();
  if (from_ == PagesFrom::kNoNew) return reserved_.gapUnits() == 0;
  if (isHopeless() || wantsHostPages()) return false;
  const auto queued = [&] { return from_ == PagesFrom::kQueued && !captured() && recycles; };
  if (!lacksRoom()) grow();
  if (reserved_.gapUnits() == 0) return true;
  pressed_ = asks_all_ = true;
  if (recycles) {
    takeFrom(heap_, Which::kAny, kNoLimit);
    takeFromOthers(Which::kComplete);
  }
  if (lacksRoom() && queued()) takeFromOthers(Which::kAny);
  if (!lacksRoom()) grow();
  if (reserved_.gapUnits() > 0 && queued()) takeFromOthers(Which::kAny);
  return reserved_.gapUnits() == 0 && !unordered_;
}

// A capture is made once, and its growth is held for as long as its graph is. So it takes free
// pages before it grows, up to some times what the heap has, whatever that costs.
std::size_t Mover::movableInCapture() const {
  const std::uint64_t most = reserved_.backed_before * kMovedInCapture,
                      moved = request_.capture->moved;
  return moved >= most ? 0 : std::size_t((most - moved) / kPageOfCapture);
}

bool Mover::captured() const {
  const MutexLock lock(heap_.mutex());
  return heap_.completion().captured() != 0;
}

// The source may belong to another pool a moment later. But only a heap that holds nothing changes
// its pool. No heap is given a page while the backing's lock is held, so there would be nothing to
// take.
//
// Heaps of forgotten streams stay. A heap without memory is asked only while it is unknown how far
// its stream is. The heap's old mappings wait for that. Pages of the other kind come only from the
// device.
bool Mover::mayGive(Heap& source) const {
  const bool same_kind = source.memory() == heap_.memory();
  const bool kind = same_kind || (mixes_ && source.memory() == kindBeside());
  if (&source == &heap_ || !kind ||
      !source.pool().givesTo(heap_.pool(), from_ == PagesFrom::kLenders))
    return false;
  const MutexLock lock(source.mutex());
  if (!same_kind && !source.hasDeviceMemory()) return false;
  if (source.rounds().frozen() && !asks_all_) return false;
  if (source.completion().anyUnknown() || source.reservedBytes() != 0) return true;
  source.withdrawIfEmpty();
  return false;
}

// The next heaps that give to this one and may have something. They share a mark.
std::vector<Heap*> Mover::nextSources(HeapTable::Search& search, std::size_t most) const {
  std::vector<Heap*> heaps;
  while (heaps.size() < most) {
    Heap* const source = state_.core.heaps.nextOffering(search);
    if (source == nullptr) break;
    if (mayGive(*source)) heaps.push_back(source);
  }
  return heaps;
}

// Visits other heaps that may give, until `done()`. Those whose memory has to be complete are asked
// how far their streams are.
template <class Done, class Visit>
void Mover::forEachOther(Which which, Done done, Visit visit) {
  if (!state_.core.options.reusesAcrossStreams()) return;
  const std::size_t at_once = StreamProgress::heapsAtOnce(asks_all_);
  std::size_t asked = asks_all_ ? StreamProgress::kAll : StreamProgress::kFew, looked = 0;
  HeapTable::Search search{heap_.pool(), from_ == PagesFrom::kLenders ? HeapTable::From::kAll
                                                                      : HeapTable::From::kGivers};
  while (!done()) {
    const std::vector<Heap*> others = nextSources(search, at_once);
    looked += others.size();
    if (others.empty() || (!asks_all_ && looked > StreamProgress::kMostHeaps)) return;
    const std::uint64_t since = state_.core.device.hostNanoseconds();
    if (which == Which::kComplete) state_.core.progress.seek(others, asked);
    asked_ns_ += state_.core.device.hostNanoseconds() - since;
    if (!asks_all_) asked = 1;  // later requests ask the other streams; 0 would make no mark at all
    for (Heap* source : others) visit(*source);
  }
}

// A program whose streams pass memory on moves pages all the time, and they are as small as its
// first requests. So once that has cost much, pages a quarter as large as a new one, or less, go
// back. Larger ones are made of them, so that there are fewer to move from then on. On a device so
// full that it overflows, the small ones would be made again.
void Mover::giveBackSmall() {
  constexpr std::uint32_t kPart = 4;
  const bool counts = state_.core.options.recycle != Recycle::kEager &&
                      request_.capture == nullptr && heap_.pool().isDefault() &&
                      !state_.core.heaps.anyOverflow();
  if (!counts || !state_.cost.muchOverdrawn()) return;
  std::uint32_t large = 0;
  for (const Gap& gap : reserved_.gaps)
    large = std::max(large, newPageUnits(state_, request_, gap, false));
  const std::uint32_t small = large / kPart;
  if (small == 0) return;
  std::uint64_t lacking = reserved_.gapUnits() * kUnit;
  const auto give = [&](Heap& heap) {
    if (lacking == 0) return;
    const ReleaseRule rule{.bytes = lacking, .most_units = small};
    const Released released = releaseComplete(state_, heap, rule);
    lacking -= std::min(lacking, released.bytes);
  };
  state_.refresh(heap_);
  give(heap_);
  forEachOther(
      Which::kComplete, [&] { return lacking == 0; }, give);
}

void Mover::takeFromOthers(Which which) {
  if (without(Mechanism::kOthersPages) && !asks_all_) return;
  const std::size_t before = reserved_.steps.size();
  forEachOther(
      which, [&] { return reserved_.gapUnits() == 0; },
      [&](Heap& source) {
        if (which == Which::kAny && !state_.core.progress.answers(source.stream())) return;
        takeFrom(source, which, kNoLimit);
      });
  if (which == Which::kAny && reserved_.steps.size() > before) unordered_ |= !orderAfterAll();
}

// Queued work may still use the pages, on any stream: what this heap's stream does from now on
// comes after all of it.
bool Mover::orderAfterAll() {
  const bool ordered = broken(Rule::kOrder) || state_.core.progress.orderAfterAll(heap_.stream());
  const MutexLock lock(heap_.mutex());
  reserved_.noteUse(heap_.completion().now());
  return ordered;
}

// Pages that lay elsewhere when the heap froze may come to where it places blocks from then on.
bool Mover::isFrozen(const Mapping& mapping, const Heap& source) const {
  source.mutex().assertHeld();
  const Rounds& rounds = source.rounds();
  return rounds.frozen() &&
         (mapping.range->kind == SizeKind::kSmall || mapping.place() >= rounds.frozenFrom());
}

// Fills gaps with free pages of the source.
void Mover::takeFrom(Heap& source, Which which, std::size_t most) {
  if (reserved_.gapUnits() == 0 || most == 0) return;
  const MutexLock lock(source.mutex());
  const bool same_pool = &source.pool() == &heap_.pool();
  const FreePageScan scan(source, state_.number);
  if (scan.freeMappings().empty() && &source != &heap_) source.withdraw();
  Donors donors;
  for (Mapping* mapping : scan.freeMappings()) {
    if (!same_pool && !mapping->page->mayLeave()) continue;
    if (!isOfUse(*mapping->page)) continue;
    if (!pressed_ && isFrozen(*mapping, source)) continue;
    if (which == Which::kAny || source.completion().complete(mapping->last_use))
      donors.add(*mapping);
  }
  if (donors.empty()) return;
  std::vector<Step> taken;
  for (Gap& gap : reserved_.gaps) {
    while (gap.at < gap.end && taken.size() < most) {
      Mapping* mapping = donors.take(gap.end - gap.at, gap.room());
      if (mapping == nullptr) break;
      taken.push_back({mapping->page, gap.at, mapping});
      gap.at += mapping->units();
    }
  }
  page_too_large_ |= taken.size() < most && reserved_.gapUnits() > 0 && !donors.empty();
  reserved_.detach(source, taken);
}

// ---- Overflow -----------------------------------------------------------------------------------

// A large block that the device has no room for takes what room there is, and pages of the host for
// the rest. What a capture has stays as its graph will find it: it lies in one place.
bool Mover::mayMix() const {
  if (!state_.core.heaps.anyOverflow() || heap_.memory() == MemoryKind::kHostPages) return false;
  if (request_.capture != nullptr) return !heap_.overflow();
  return (request_.kind == SizeKind::kLarge || !heap_.overflow()) && !captured();
}

MemoryKind Mover::kindBeside() const {
  return heap_.overflow() ? MemoryKind::kPages : MemoryKind::kOverflow;
}

// A capture takes only what is complete.
Heap* Mover::besideInReach() const {
  if (request_.capture != nullptr || !mayMix()) return nullptr;
  Heap* const beside = HeapTable::beside(heap_);
  if (beside == nullptr || beside->memory() != kindBeside()) return nullptr;
  const MutexLock lock(beside->mutex());
  return beside->hasDeviceMemory() ? beside : nullptr;
}

// Free pages of the device that the heap beside this one has. It is the same stream's.
void Mover::takeFromBeside() {
  Heap* const beside = reserved_.gapUnits() == 0 ? nullptr : besideInReach();
  if (beside == nullptr) return;
  takeFrom(*beside, Which::kAny, kNoLimit);
  const MutexLock lock(heap_.mutex());
  reserved_.noteUse(heap_.completion().now());
}

// Whether a free page may come here. A heap of overflow has pages of the device, too.
bool Mover::isOfUse(const PhysicalPage& page) const {
  const MemoryKind kind = heap_.memory();
  return page.kind == kind || (mixes_ && mayHold(kind, page.kind));
}

// ---- Growth ------------------------------------------------------------------------------------

// Growth by more pages than this finds out first.
static constexpr std::uint32_t kManyPages = 16;

// The host's memory will serve a request of a full device. So pages that are made only to be given
// back would be made in each step of a program.
bool Mover::lacksRoom() const {
  return mixes_ && !heap_.overflow() && reserved_.gapUnits() * kUnit > state_.core.limit.left();
}

// Pages that are made only to be given back cost a request that is refused most of its time. So
// growth by many pages, or after a refusal, compares first. All that lies free in heaps and on the
// device has to be enough. Where it is, that is one call. But a driver may find
// more than it says, such as what its own pools keep. So the request counts as hopeless only if the
// device refuses one page of all that is missing.
bool Mover::isHopeless() {
  std::uint32_t pages = 0;
  for (const Gap& gap : reserved_.gaps) {
    if (gap.lacking() == 0) continue;
    const std::uint32_t units = newPageUnits(state_, request_, gap, false);
    pages += (gap.lacking() + units - 1) / units;
  }
  if (pages <= (state_.core.answers.wasRefused() ? 1 : kManyPages)) return false;
  const MemoryKind kind = heap_.memory();
  std::uint64_t free = freeBytes(state_.core.heaps.with(kind));
  if (mixes_) free += freeDeviceBytes(state_.core.heaps.with(kindBeside()));
  if (request_.rounded() <= free) return false;
  std::uint64_t missing = roundUp(request_.rounded() - free, kUnit);
  if (mixes_ && heap_.overflow()) missing -= std::min(missing, state_.core.limit.left());
  if (missing > state_.core.leftFor(kind)) return true;
  if (kind != MemoryKind::kPages) return false;
  const Result<MemoryInfo> info = state_.core.device.memoryInfo();
  if (!info || missing <= info.value().free_bytes) return false;
  PhysicalPage* const all = createOf(kind, std::uint32_t(missing / kUnit));
  if (all != nullptr) (void)state_.release(*all);
  return all == nullptr;
}

// Below the limit, other processes may have the device's memory.
std::uint64_t Mover::roomOnDevice() const {
  const Result<MemoryInfo> info = state_.core.device.memoryInfo();
  const std::uint64_t left = state_.core.limit.left();
  return info ? std::min<std::uint64_t>(left, info.value().free_bytes) : left;
}

// A GiB of them takes some 200 ms (docs/overflow.md), and other misses wait for the lock.
bool Mover::wantsHostPages() {
  constexpr std::uint64_t kManyUnits = 64 * kMiB / kUnit;
  if (wanted_ == nullptr || heap_.memory() == MemoryKind::kPages) return false;
  std::uint64_t units = reserved_.gapUnits();
  if (units < kManyUnits) return false;
  if (mixes_) units -= std::min(units, roomOnDevice() / kUnit);
  if (units < kManyUnits) return false;
  const Gap& gap = *std::ranges::max_element(reserved_.gaps, {}, &Gap::lacking);
  *wanted_ = {std::uint32_t(units), newPageUnits(state_, request_, gap, false)};
  return true;
}

void Mover::grow() {
  for (Gap& gap : reserved_.gaps) {
    while (gap.at < gap.end) {
      PhysicalPage* page = create(gap);
      if (page == nullptr) return;
      reserved_.steps.push_back({page, gap.at});
      gap.at += page->units;
    }
  }
}

PhysicalPage* Mover::create(const Gap& gap) {
  const std::uint32_t units = newPageUnits(state_, request_, gap, pressed_);
  if (mixes_ && heap_.overflow() && !device_full_) {
    if (PhysicalPage* const page = createOnDevice(units)) return page;
    device_full_ = true;
  }
  PhysicalPage* const spare = findSpare(heap_.memory(), gap.lacking());
  return spare != nullptr ? spare : createOf(heap_.memory(), units);
}

// Spare pages are the first of all. Each is looked at once: what comes into the window counts as
// spare until that is committed, and pages made meanwhile come before the first.
PhysicalPage* Mover::findSpare(MemoryKind kind, std::uint32_t most) {
  const auto end = state_.table.pages().end();
  if (!next_spare_) next_spare_ = state_.table.pages().begin();
  while (*next_spare_ != end && (*next_spare_)->spare()) {
    PhysicalPage& page = *(*next_spare_)++;
    if (page.kind == kind && page.units <= most && page.mappings.empty()) return &page;
  }
  return nullptr;
}

// As large a page as the device has room for. It does not tell, so each attempt is half as large.
PhysicalPage* Mover::createOnDevice(std::uint32_t most) {
  const std::uint64_t left = state_.core.limit.left() / kUnit;
  for (auto units = std::uint32_t(std::min<std::uint64_t>(most, left)); units > 0; units /= 2) {
    if (PhysicalPage* const page = createOf(MemoryKind::kPages, units)) return page;
  }
  return nullptr;
}

PhysicalPage* Mover::createOf(MemoryKind kind, std::uint32_t units) {
  const std::uint64_t since = state_.core.device.hostNanoseconds();
  std::list<PhysicalPage> made;
  if (!makePage(state_.core, kind, units, made)) return nullptr;
  if (kind == MemoryKind::kPages)  // the budget is about the device's pages
    state_.create_cost.note(double(state_.core.device.hostNanoseconds() - since));
  ++state_.counters.created;
  return &state_.table.adopt(made);
}

}  // namespace cistern::pages
