#include "allocator/engine/pages/sleeping.hpp"

#include <algorithm>
#include <new>

#include "allocator/base/check.hpp"
#include "allocator/engine/pages/placing.hpp"

namespace cistern::pages {

// ---- Going to sleep -----------------------------------------------------------------------------

bool hasUsedMappings(State& state, const PhysicalPage& page) {
  return std::ranges::any_of(page.mappings, [&](const Mapping* mapping) {
    Heap& home = *mapping->range->home;
    const auto complete = [&] {
      const MutexLock lock(home.mutex());
      return home.completion().complete(mapping->last_use);
    };
    if (!mapping->removable() || complete()) return false;
    state.refresh(home);
    return !complete();
  });
}

std::list<SleepingPage> recordFor(const PhysicalPage& page) {
  std::list<SleepingPage> one(1);
  one.front().at.reserve(page.mappings.size());
  return one;
}

namespace {

bool dropUnheld(State& state, PhysicalPage& page) noexcept {
  for (std::size_t i = page.mappings.size(); i-- > 0;) {
    Mapping& mapping = *page.mappings[i];
    if (mapping.removable() && !state.remove(mapping)) return false;
  }
  return true;
}

bool unmap(State& state, const VacantRange& range) noexcept {
  const std::uint64_t bytes = (range.end_unit - range.unit) * kUnit;
  return state.core.device.unmap(range.range->deviceOfUnit(range.unit), bytes).ok();
}

// The mapping's record goes; the device's mapping is `record`'s to unmap, if `mapped`.
void moveTo(State& state, Mapping& mapping, SleepingPage& record, bool mapped) noexcept {
  VacantRange& range = record.at.emplace_back();
  range.range = mapping.range;
  range.unit = mapping.unit;
  range.end_unit = mapping.end_unit;
  range.mapped = mapped;
  if (mapping.isCurrent()) {
    record.current = record.at.size() - 1;
    state.table.makeStale(mapping, MappingTable::Device::kCalled);
  }
  state.table.vacate(mapping, range);
  state.table.removeMapping(mapping);
}

// The heap does not count the page any more. Pre: the device has taken it back.
void noteGone(State& state, SleepingPage& page) noexcept {
  {
    const MutexLock lock(page.heap->mutex());
    page.heap->layout(page.kind).countBacking(page.bytes(), -1, true);
  }
  state.core.limit.noteReturned(page.bytes());
  ++state.counters.returned;
  page.kept.reset();
}

}  // namespace

// The range that blocks lie in goes first: if it does not go, nothing has changed.
SleepingPage* putAway(State& state, PhysicalPage& page, std::list<SleepingPage>& record) noexcept {
  Mapping& current = *page.current;
  if (!dropUnheld(state, page)) return nullptr;
  if (!state.core.device.unmap(current.deviceAddress(), current.bytes())) return nullptr;
  SleepingPage& asleep = record.front();
  asleep.heap = page.counted_by;
  asleep.kind = page.counted_as;
  asleep.units = page.units;
  asleep.settled = page.settled;
  asleep.kept = page.handle;
  while (!page.mappings.empty()) {
    Mapping& first = *page.mappings.front();
    moveTo(state, first, asleep, &first != &current);
  }
  state.table.removePage(page);
  std::list<SleepingPage>& sleeping = state.notes.of(*asleep.heap).sleeping;
  sleeping.splice(sleeping.end(), record);
  giveUp(state, asleep);
  return &asleep;
}

void giveUp(State& state, SleepingPage& page) noexcept {
  if (!page.kept) return;
  bool all = true;
  for (VacantRange& range : page.at) {
    if (range.mapped && unmap(state, range)) range.mapped = false;
    all = all && !range.mapped;
  }
  if (all && state.core.device.releasePage(*page.kept)) noteGone(state, page);
}

// ---- Waking -------------------------------------------------------------------------------------

// A page's calls take some 80 us whatever its size, and its bytes 40 us a MiB over the bus and back
// (an H100). So at 32 MiB the calls are 6 % of that, and at 256 MiB 1 %. But a large page holds
// back more free memory while one of its blocks lives.
std::uint32_t mostJoined(std::uint64_t units) {
  constexpr std::uint64_t kLeast = 32 * kMiB / kUnit, kMost = 256 * kMiB / kUnit;
  return std::uint32_t(std::clamp(units / 32, kLeast, kMost));
}

bool canJoin(const SleepingPage& first, const SleepingPage& second, std::uint32_t most) {
  const auto plain = [](const SleepingPage& page) {
    return page.at.size() == 1 && !page.kept && !page.isHeld();
  };
  if (!plain(first) || !plain(second) || first.units + second.units > most) return false;
  const VacantRange &a = first.at.front(), &b = second.at.front();
  return first.heap == second.heap && first.kind == second.kind && a.range == b.range &&
         a.end_unit == b.unit;
}

void join(SleepingPage& first, SleepingPage& second) noexcept {
  first.units += second.units;
  first.at.front().end_unit = second.at.front().end_unit;
  first.settled = first.settled && second.settled;
  second.joined = true;
}

Status makeAndMap(State& state, SleepingPage& page) {
  Device& device = state.core.device;
  if (!page.kept) {
    const Result<Page> made = device.createPage(page.bytes());
    state.answers.note(made);
    if (!made) return made.error();
    page.kept = made.value();
    ++state.counters.created;
    const MutexLock lock(page.heap->mutex());
    page.heap->layout(page.kind).countBacking(page.bytes(), +1, true);
  }
  for (VacantRange& range : page.at) {
    if (range.mapped) continue;
    const Address at = range.range->deviceOfUnit(range.unit);
    if (Status mapped = device.map(at, page.bytes(), *page.kept); !mapped.ok()) return mapped;
    range.mapped = true;
  }
  // Also where it was mapped before: whether access was set there is not known.
  for (VacantRange& range : page.at) {
    const Address at = range.range->deviceOfUnit(range.unit);
    if (Status set = device.setAccess(at, page.bytes()); !set.ok()) return set;
  }
  return {};
}

Waking prepareWake(State& state, SleepingPage& page) {
  Waking waking{&page, nullptr, {}};
  waking.mappings.reserve(page.at.size());
  waking.made = &state.table.addPage(*page.kept, page.units);
  try {
    for (const VacantRange& range : page.at)
      waking.mappings.push_back(&state.table.addMapping(*waking.made, *range.range, range.unit));
  } catch (...) {
    forgetWake(state, waking);
    throw;
  }
  return waking;
}

void forgetWake(State& state, Waking& waking) noexcept {
  for (Mapping* mapping : waking.mappings) state.table.removeMapping(*mapping);
  state.table.removePage(*waking.made);
}

void bindAgain(State& state, Waking& waking) noexcept {
  SleepingPage& asleep = *waking.page;
  PhysicalPage& page = *waking.made;
  page.settled = asleep.settled;
  page.counted_by = asleep.heap;
  page.counted_as = asleep.kind;
  for (std::size_t i = 0; i < waking.mappings.size(); ++i) {
    Mapping& mapping = *waking.mappings[i];
    mapping.accessible = true;
    if (i == asleep.current) state.table.makeCurrent(mapping);
    state.table.bind(asleep.at[i], mapping);
  }
}

namespace {

// Fills the parts of holes that the mapping covers. Returns a block at its end, for the next.
void fillIn(Heap& heap, const Mapping& mapping, AscendingSearch& search) noexcept
    CISTERN_REQUIRES(heap.mutex()) {
  const PageRange& range = *mapping.range;
  const std::uint64_t now = heap.completion().now();
  Block* block = search.covering(range, mapping.place());
  while (block != nullptr && block->address() < mapping.placeEnd()) {
    if (block->isHole()) {
      const Address from = std::max(block->address(), mapping.place());
      const Address to = std::min(block->end(), mapping.placeEnd());
      block = heap.fill(range.kind, *block, from, to, now);
      search.goOnFrom(*block);
    }
    block = block->next;
  }
}

}  // namespace

void fillHoles(Heap& heap) noexcept {
  AscendingSearch search;
  forEachSegment(heap, [&](HeapSegment& segment) {
    heap.mutex().assertHeld();
    const auto& range = static_cast<const PageRange&>(segment);
    search.beginAnew();
    forEachMapping(range, range.base, range.end(), [&](const Mapping& mapping) {
      heap.mutex().assertHeld();
      if (mapping.isCurrent()) fillIn(heap, mapping, search);
    });
  });
}

}  // namespace cistern::pages
