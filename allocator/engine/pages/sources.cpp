// Where pages for the gaps of a window come from. See mover.hpp; page_size.cpp says how large new
// ones are.
#include <algorithm>
#include <tuple>

#include "allocator/engine/pages/mover.hpp"
#include "allocator/engine/pages/parking.hpp"
#include "allocator/engine/pages/release.hpp"

namespace cistern::pages {
namespace {

constexpr std::size_t kNoLimit = SIZE_MAX;

/// A free page to choose. In order of size; of one size the last is taken first: the longest
/// unused, then what lies in the smallest free block.
struct Donor {
  explicit Donor(Mapping& of)
      : units(of.units()),
        epoch(without(Mechanism::kOldestFirst) ? 0 : of.found.in->epoch),
        granules(without(Mechanism::kSmallestBlock) ? 0 : of.found.in->granules),
        range(of.range->base),
        unit(of.unit),
        mapping(&of) {}
  std::uint32_t units, epoch, granules;
  Address range;
  std::uint32_t unit;
  Mapping* mapping;

  friend bool operator<(const Donor& a, const Donor& b) {
    if (a.units != b.units) return a.units < b.units;
    return std::tie(b.epoch, b.granules, b.range, a.unit) <
           std::tie(a.epoch, a.granules, a.range, b.unit);
  }
};

/// The largest that is no larger than `fitting` units; where there is none, the smallest that is no
/// larger than `most`. Null when there is neither. Pre: sorted.
Mapping* take(std::vector<Donor>& donors, std::uint32_t fitting, std::uint32_t most) {
  if (donors.empty()) return nullptr;
  const std::uint32_t smallest = donors.front().units;
  if (smallest > fitting && smallest > most) return nullptr;
  const bool any = without(Mechanism::kLargestFitting);
  const std::uint32_t units = any ? smallest : std::max(smallest, fitting);
  const auto chosen = std::ranges::upper_bound(donors, units, {}, &Donor::units) - 1;
  Mapping* const mapping = chosen->mapping;
  donors.erase(chosen);
  return mapping;
}

}  // namespace

std::uint32_t Mover::gapUnits() const {
  std::uint32_t units = 0;
  for (const Gap& gap : gaps_) units += gap.end > gap.at ? gap.end - gap.at : 0;
  return units;
}

// What lies free comes before what is made.
bool Mover::gather() {
  if (ground_.recycles()) {
    takeOwn(request_.recording ? movableInCapture() : kNoLimit);
    takeFromOthers(kNoLimit, Which::kComplete);
    if (waits_) takeFromOthers(kNoLimit, Which::kAny);
    if (unordered_) return false;
  }
  grow();
  if (gapUnits() == 0) return true;
  pressed_ = true;
  if (ground_.recycles()) {
    takeOwn(kNoLimit);
    takeFromOthers(kNoLimit, Which::kComplete);
  }
  if (request_.recording == nullptr) giveBackForGrowth();
  grow();
  const bool queued = from_ == PagesFrom::kQueued && !captured() && ground_.recycles();
  if (gapUnits() > 0 && queued) takeFromOthers(kNoLimit, Which::kAny);
  return gapUnits() == 0 && !unordered_;
}

// What may not be moved here may still make room.
void Mover::giveBackForGrowth() {
  const bool others_move = ground_.recycles() && ground_.options.reusesAcrossStreams();
  if (others_move) return;
  std::size_t next = 0;
  while (Heap* const heap = ground_.heaps.offering().next(next)) {
    const std::uint64_t lacking = gapUnits() * kUnit, left = roomLeft();
    if (gives(*heap) && lacking > left)
      (void)releaseFree(ground_, *heap, {UINT32_MAX, lacking - left});
  }
}

// What lies free in a pool that is captured into is complete, or the capture's own.
bool Mover::captured() const {
  const MutexLock lock(heap_.mutex());
  return heap_.completion().recorded() != 0;
}

// Its pool may be another a moment later. But only a heap that holds nothing changes it, and none
// is given a page while the backing's lock is held: there would be nothing to take.
bool Mover::gives(const Heap& source) const {
  return source.onPages() && source.pool().givesTo(heap_.pool(), from_ == PagesFrom::kLenders);
}

// Heaps of streams that are gone stay. One that holds nothing is asked how far its stream is only
// while that is not known: its old mappings wait for it.
bool Mover::hasAny(Heap& source) const {
  {
    const MutexLock lock(source.mutex());
    const bool pending = source.completion().anyUnknown();
    if (pending || source.layout(SizeKind::kSmall).segmentBytes() != 0 ||
        source.layout(SizeKind::kLarge).segmentBytes() != 0)
      return true;
  }
  if (source.pageNotes().aside() != 0) return true;
  const MutexLock lock(source.mutex());
  withdrawIfEmpty(source);
  return false;
}

// Below the limit, and on the device.
std::uint64_t Mover::roomLeft() const {
  const Result<MemoryInfo> info = ground_.device.memoryInfo();
  return std::min(ground_.limit.left(), info.ok() ? info.value().free_bytes : 0);
}

void Mover::takeOwn(std::size_t most) {
  if (gapUnits() == 0 || most == 0) return;
  const MutexLock lock(heap_.mutex());
  takeFrom(heap_, Which::kAny, most);
}

void Mover::takeFromOthers(std::size_t most, Which which) {
  if (without(Mechanism::kOthersPages) && !pressed_) return;
  if (!ground_.options.reusesAcrossStreams()) return;
  std::size_t next = 0;
  while (Heap* const source = ground_.heaps.offering().next(next)) {
    if (gapUnits() == 0 || most == 0) return;
    if (source == &heap_ || !gives(*source) || !hasAny(*source)) continue;
    if (which == Which::kAny && !ground_.progress.answers(source->stream())) continue;
    if (which == Which::kComplete) ground_.progress.seek(*source);
    const std::size_t before = steps_.size();
    {
      const MutexLock lock(source->mutex());
      most -= takeFrom(*source, which, most);
    }
    if (which == Which::kAny && steps_.size() > before && !orderAfter(*source)) return;
  }
}

// Pages whose last use may still be queued on the source's stream: what this heap's stream does
// from now on comes after it.
bool Mover::orderAfter(Heap& source) {
  const RelaxedCaptureMode relaxed(ground_.device);
  const bool ordered =
      broken(Rule::kOrder) || ground_.progress.orderAfter(heap_.stream(), source.stream());
  const MutexLock lock(heap_.mutex());
  for (Step& step : steps_) {
    if (step.source == &source) step.epoch = heap_.completion().now().epoch;
    if (step.source == &source && !ordered) unordered_ = true;
  }
  return ordered;
}

// Fills gaps with free pages of the source. Returns how many.
std::size_t Mover::takeFrom(Heap& source, Which which, std::size_t most) {
  (void)bringBack(ground_, source);
  const bool same_pool = &source.pool() == &heap_.pool();
  const FreePageScan scan(source, ground_.scans,
                          same_pool ? Whither::kWithinPool : Whither::kAnywhere);
  if (!scan.any() && &source != &heap_) withdraw(source);
  std::vector<Donor> donors;
  for (Mapping* mapping : scan.freeMappings()) {
    if (which == Which::kAny || source.completion().complete(mapping->last_use))
      donors.push_back(Donor(*mapping));
  }
  if (donors.empty()) return 0;
  std::sort(donors.begin(), donors.end());
  std::vector<Step> taken;
  std::vector<Mapping*> mappings;
  for (Gap& gap : gaps_) {
    while (gap.at < gap.end && taken.size() < most) {
      Mapping* mapping = take(donors, gap.end - gap.at, mostFor(gap));
      if (mapping == nullptr) break;
      mappings.push_back(mapping);
      taken.push_back({mapping->page, gap.at, mapping, nullptr, nullptr, 0, false});
      gap.at += mapping->units();
    }
  }
  page_too_large_ |= taken.size() < most && gapUnits() > 0 && !donors.empty();
  prepareMoves(source, mappings);
  detach(source, taken);
  return taken.size();
}

// A large page is lost to large requests as soon as a small one lies in it; but to make a new one
// beside free memory is dearer, and the small ones to come fill what they are given. (In a capture
// few come.)
std::uint32_t Mover::mostFor(const Gap& gap) const {
  constexpr std::uint32_t kMostForSmall = 4;
  const std::uint32_t room = gap.room_end - gap.at;
  if (without(Mechanism::kMostForSmall)) return room;
  if (request_.kind == SizeKind::kLarge || pressed_) return room;
  return request_.recording ? 1 : std::min(room, kMostForSmall);
}

// ---- Growth ------------------------------------------------------------------------------------

// Pages that undoing left behind come first: they are paid for.
void Mover::grow() {
  for (Gap& gap : gaps_) {
    while (gap.at < gap.end) {
      PhysicalPage* page = spareFor(mostFor(gap));
      if (page == nullptr) page = create(newPageUnits(gap));
      if (page == nullptr) return;
      steps_.push_back({page, gap.at, nullptr, nullptr, nullptr, 0, false});
      gap.at += page->units;
    }
  }
}

// A gap that takes several pages gets them of one size, so that they fit the next request of its
// kind. One that takes less gets a page to itself: what reaches into the next block is not free
// together with it. But in a capture, which asks for little at a time, it leaves the rest of 8 MiB
// to requests to come.
std::uint32_t Mover::newPageUnits(const Gap& gap) const {
  const std::uint32_t lacking = gap.end - gap.at, room = gap.room_end - gap.at;
  const std::uint32_t page = pageUnits(lacking);
  if (pressed_) return std::min(page, lacking);
  if (ground_.options.page_size != 0) return std::min(page, room);
  if (lacking <= page) {
    constexpr std::uint32_t kShared = 4;
    if (request_.recording == nullptr || without(Mechanism::kReachBeyond)) return lacking;
    return std::max(lacking, std::min({page, room, kShared}));
  }
  if (without(Mechanism::kEvenPages)) return page;
  const std::uint32_t count = (lacking + page - 1) / page;
  return (lacking + count - 1) / count;
}

PhysicalPage* Mover::spareFor(std::uint32_t most_units) {
  PhysicalPage* page = ground_.table.spares();
  while (page && page->units > most_units) page = page->next_spare;
  if (page) ground_.table.takeSpare(*page);
  return page;
}

// The record comes before the page: without one nobody would know of what the device will not have
// back.
PhysicalPage* Mover::create(std::uint32_t units) {
  const std::uint64_t bytes = units * kUnit;
  if (!ground_.limit.admit(bytes)) return nullptr;
  PhysicalPage* made = nullptr;
  try {
    made = &ground_.table.addPage({}, units);
  } catch (...) {
    ground_.limit.giveBack(bytes);
    throw;
  }
  const std::uint64_t since = ground_.device.hostNanoseconds();
  const Result<Page> page = ground_.device.createPage(bytes);
  ground_.noteAnswer(page);
  if (!page) {
    ground_.table.removePage(*made);
    ground_.limit.giveBack(bytes);
    return nullptr;
  }
  ground_.create_cost.note(double(ground_.device.hostNanoseconds() - since));
  ++ground_.counters.created;
  made->handle = page.value();
  made->late = made_late_;
  return made;
}

}  // namespace cistern::pages
