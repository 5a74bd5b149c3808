// Where the pages for one miss come from.
#include <algorithm>
#include <tuple>

#include "allocator/engine/capture/recording.hpp"
#include "allocator/engine/engine.hpp"
#include "allocator/engine/pages/mover.hpp"
#include "allocator/engine/pages/release.hpp"

namespace cistern::pages {
namespace {

constexpr std::size_t kNoLimit = SIZE_MAX;
/// So many times the memory of its heap a capture may move, all together; in pages of 8 MiB.
constexpr std::uint64_t kMovedInCapture = 64, kPageOfCapture = 4 * kUnit;

/// A free page that may be taken: its size in units, then what tells it from others of that size,
/// of which the last is taken first: the longest unused, then what lies in the smallest free block.
using Donor =
    std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, Address, std::uint32_t, Mapping*>;

Donor donorOf(Mapping& mapping) {
  const Block& in = *mapping.found.in;
  const std::uint32_t epoch = without(Mechanism::kOldestFirst) ? 0 : in.epoch;
  const std::uint32_t granules = without(Mechanism::kSmallestBlock) ? 0 : in.granules;
  return {mapping.units(), ~epoch, ~granules, ~mapping.range->base, mapping.unit, &mapping};
}

std::uint32_t unitsOf(const Donor& donor) { return std::get<0>(donor); }

/// The largest that is no larger than `fitting` units; where there is none, the smallest that is no
/// larger than `most`. Null when there is neither. Pre: sorted.
Mapping* take(std::vector<Donor>& donors, std::uint32_t fitting, std::uint32_t most) {
  if (donors.empty()) return nullptr;
  const std::uint32_t smallest = unitsOf(donors.front());
  if (smallest > fitting && smallest > most) return nullptr;
  const bool any = without(Mechanism::kLargestFitting);
  const std::uint32_t units = any ? smallest : std::max(smallest, fitting);
  const auto chosen = std::ranges::upper_bound(donors, units, {}, unitsOf) - 1;
  Mapping* const mapping = std::get<Mapping*>(*chosen);
  donors.erase(chosen);
  return mapping;
}

}  // namespace

// What lies free comes before what is made.
bool Mover::fillGaps(bool waits, bool late) {
  pressed_ = unordered_ = false;
  const bool recycles = ground_.recycles();
  if (recycles) {
    giveBackSmall();
    if (movesOwn(ground_, request_)) takeOwn(request_.recording ? movableInCapture() : kNoLimit);
    takeFromOthers(Which::kComplete);
    if (waits) takeFromOthers(Which::kAny);
    if (unordered_) return false;
  }
  grow(late);
  if (reserved_.gapUnits() == 0) return true;
  pressed_ = true;
  if (recycles) {
    takeOwn(kNoLimit);
    takeFromOthers(Which::kComplete);
  }
  if (request_.recording == nullptr) giveBackForGrowth();
  grow(late);
  const bool queued = from_ == PagesFrom::kQueued && !captured() && recycles;
  if (reserved_.gapUnits() > 0 && queued) takeFromOthers(Which::kAny);
  return reserved_.gapUnits() == 0 && !unordered_;
}

// A capture is made once, and what it grows by is held for as long as its graph is: so it takes
// what lies free before it grows, up to some times what the heap has, whatever that costs.
std::size_t Mover::movableInCapture() const {
  const std::uint64_t most = reserved_.backed_before * kMovedInCapture,
                      moved = request_.recording->moved;
  return moved >= most ? 0 : std::size_t((most - moved) / kPageOfCapture);
}

// A program whose streams pass memory on moves pages all the time, and they are as small as its
// first requests. So once that has cost much, pages a quarter as large as a new one, or less, go
// back, and larger ones are made of them: fewer to move from then on.
void Mover::giveBackSmall() {
  constexpr std::uint32_t kPart = 4;
  const bool counts = ground_.engine.options.recycle != Recycle::kEager &&
                      request_.recording == nullptr && heap_.pool().isDefault();
  if (!counts || !ground_.cost.muchOverdrawn()) return;
  std::uint32_t large = 0;
  for (const Gap& gap : reserved_.gaps)
    large = std::max(large, newPageUnits(ground_, request_, gap, false));
  const std::uint32_t small = large / kPart;
  if (small == 0) return;
  std::uint64_t lacking = reserved_.gapUnits() * kUnit;
  const auto give = [&](Heap& heap) {
    const ReleaseRule rule{.bytes = lacking, .most_units = small};
    lacking -= std::min(lacking, releaseFree(ground_, heap, rule).bytes);
  };
  give(heap_);
  if (!ground_.engine.options.reusesAcrossStreams()) return;
  std::size_t next = 0;
  while (Heap* const heap = lacking > 0 ? ground_.engine.heaps.nextOffering(next) : nullptr) {
    if (heap == &heap_ || !gives(*heap)) continue;
    ground_.engine.progress.seek(*heap);
    give(*heap);
  }
}

// What may not be moved here may still make room.
void Mover::giveBackForGrowth() {
  const bool others_move = ground_.recycles() && ground_.engine.options.reusesAcrossStreams();
  if (others_move) return;
  std::size_t next = 0;
  while (Heap* const heap = ground_.engine.heaps.nextOffering(next)) {
    const std::uint64_t lacking = reserved_.gapUnits() * kUnit + ground_.engine.limit.over();
    const Result<MemoryInfo> info = ground_.engine.device.memoryInfo();
    const std::uint64_t left =
        std::min(ground_.engine.limit.left(), info.ok() ? info.value().free_bytes : 0);
    if (gives(*heap) && lacking > left)
      (void)releaseFree(ground_, *heap, {.bytes = lacking - left});
  }
}

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
  const MutexLock lock(source.mutex());
  if (source.completion().anyUnknown() || source.reservedBytes() != 0) return true;
  withdrawIfEmpty(source);
  return false;
}

void Mover::takeOwn(std::size_t most) {
  if (reserved_.gapUnits() == 0 || most == 0) return;
  const MutexLock lock(heap_.mutex());
  takeFrom(heap_, Which::kAny, most);
}

void Mover::takeFromOthers(Which which) {
  if (without(Mechanism::kOthersPages) && !pressed_) return;
  if (!ground_.engine.options.reusesAcrossStreams()) return;
  std::size_t next = 0;
  while (Heap* const source = ground_.engine.heaps.nextOffering(next)) {
    if (reserved_.gapUnits() == 0) return;
    if (source == &heap_ || !gives(*source) || !hasAny(*source)) continue;
    if (which == Which::kAny && !ground_.engine.progress.answers(source->stream())) continue;
    if (which == Which::kComplete) ground_.engine.progress.seek(*source);
    const std::size_t before = reserved_.steps.size();
    {
      const MutexLock lock(source->mutex());
      takeFrom(*source, which, kNoLimit);
    }
    const bool taken = reserved_.steps.size() > before;
    if (which == Which::kAny && taken && !orderAfter(*source)) return;
  }
}

// Pages whose last use may still be queued on the source's stream: what this heap's stream does
// from now on comes after it.
bool Mover::orderAfter(Heap& source) {
  const RelaxedCaptureMode relaxed(ground_.engine.device);
  const bool ordered =
      broken(Rule::kOrder) || ground_.engine.progress.orderAfter(heap_.stream(), source.stream());
  const MutexLock lock(heap_.mutex());
  reserved_.noteUse(heap_.completion().now());
  unordered_ |= !ordered;
  return ordered;
}

// Fills gaps with free pages of the source.
void Mover::takeFrom(Heap& source, Which which, std::size_t most) {
  bringBack(ground_, source);
  const bool same_pool = &source.pool() == &heap_.pool();
  const FreePageScan scan(source, ground_.number);
  if (scan.freeMappings().empty() && &source != &heap_) withdraw(source);
  std::vector<Donor> donors;
  for (Mapping* mapping : scan.freeMappings()) {
    if (!same_pool && !mapping->page->mayLeave()) continue;
    if (which == Which::kAny || source.completion().complete(mapping->last_use))
      donors.push_back(donorOf(*mapping));
  }
  if (donors.empty()) return;
  std::ranges::sort(donors);
  std::vector<Step> taken;
  for (Gap& gap : reserved_.gaps) {
    while (gap.at < gap.end && taken.size() < most) {
      Mapping* mapping = take(donors, gap.end - gap.at, gap.room());
      if (mapping == nullptr) break;
      taken.push_back({mapping->page, gap.at, mapping});
      gap.at += mapping->units();
    }
  }
  page_too_large_ |= taken.size() < most && reserved_.gapUnits() > 0 && !donors.empty();
  reserved_.detach(source, taken);
}

// ---- Growth ------------------------------------------------------------------------------------

void Mover::grow(bool late) {
  for (Gap& gap : reserved_.gaps) {
    while (gap.at < gap.end) {
      PhysicalPage* page = create(newPageUnits(ground_, request_, gap, pressed_), late);
      if (page == nullptr) return;
      reserved_.steps.push_back({page, gap.at});
      gap.at += page->units;
    }
  }
}

// The record comes before the page: without one nobody would know of what the device will not have
// back.
PhysicalPage* Mover::create(std::uint32_t units, bool late) {
  const std::uint64_t bytes = units * kUnit;
  if (!ground_.engine.limit.admit(bytes)) return nullptr;
  PhysicalPage* made = nullptr;
  try {
    made = &ground_.table.addPage({}, units);
  } catch (...) {
    ground_.engine.limit.giveBack(bytes);
    throw;
  }
  const std::uint64_t since = ground_.engine.device.hostNanoseconds();
  const Result<Page> page = ground_.engine.device.createPage(bytes);
  ground_.engine.pages.noteAnswer(page);
  if (!page) {
    ground_.table.removePage(*made);
    ground_.engine.limit.giveBack(bytes);
    return nullptr;
  }
  ground_.create_cost.note(double(ground_.engine.device.hostNanoseconds() - since));
  ++ground_.counters.created;
  made->handle = page.value();
  made->late = late;
  return made;
}

}  // namespace cistern::pages
