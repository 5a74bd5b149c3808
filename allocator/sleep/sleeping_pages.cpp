#include "allocator/sleep/sleeping_pages.hpp"

#include <algorithm>

#include "allocator/engine/pages/placing.hpp"

namespace cistern::pages {

// ---- Going to sleep -----------------------------------------------------------------------------

bool hasUsedMappings(State& state, const PhysicalPage& page) {
  return std::ranges::any_of(page.mappings, [&](const Mapping* mapping) {
    return mapping->removable() && !lastUseIsComplete(state, *mapping, true);
  });
}

namespace {

// False if the mapping is still there, because the device refuses, or hooks are to hear of it
// first.
bool unmap(State& state, Mapping& mapping) noexcept {
  if (!mapping.mapped) return true;
  if (state.withdraw(mapping)) return false;
  if (!state.core.device.unmap(mapping.deviceAddress(), mapping.bytes())) return false;
  mapping.mapped = false;
  if (state.core.memory_hooks.on()) state.core.memory_hooks.gone(mapping.deviceAddress());
  return true;
}

}  // namespace

// The mapping that blocks lie in goes first: if it does not go, nothing has changed.
bool putAway(State& state, PhysicalPage& page) noexcept {
  for (std::size_t i = page.mappings.size(); i-- > 0;) {
    Mapping& mapping = *page.mappings[i];
    if (mapping.removable() && !state.takeAway(mapping)) return false;
  }
  if (!unmap(state, *page.current) && !page.current->withdrawn) return false;
  state.table.setAsleep(page, true);
  giveUp(state, page);
  return true;
}

void giveUp(State& state, PhysicalPage& page) noexcept {
  if (!page.made) return;
  bool all = true;
  for (Mapping* mapping : page.mappings) {
    all = unmap(state, *mapping) && all;
  }
  if (all) page.made = !state.returnToDevice(page);
}

// ---- Waking -------------------------------------------------------------------------------------

// A page's calls take some 80 us whatever its size, and its bytes 40 us a MiB over the bus and back
// (an H100). So at 32 MiB the calls are 6 % of that, and at 256 MiB 1 %. But a large page holds
// back more free memory while one of its blocks lives.
std::uint32_t mostJoined(std::uint64_t units) {
  constexpr std::uint64_t kLeast = 32 * kMiB / kUnit, kMost = 256 * kMiB / kUnit;
  return std::uint32_t(std::clamp(units / 32, kLeast, kMost));
}

bool canJoin(const PhysicalPage& first, const PhysicalPage& second, std::uint32_t most) {
  const auto plain = [](const PhysicalPage& page) {
    return page.mappings.size() == 1 && !page.made && !page.holds.any();
  };
  if (!plain(first) || !plain(second) || first.units + second.units > most) return false;
  const Mapping &a = *first.current, &b = *second.current;
  return a.range == b.range && a.end_unit == b.unit;
}

namespace {

Status make(State& state, PhysicalPage& page) {
  if (!state.core.admit(page.kind, page.bytes()))
    return DeviceError{Call::kCreatePage, ErrorKind::kOutOfMemory, 0, "beyond the limit", {}};
  const Result<Page> made = state.core.device.createPage(page.bytes());
  state.core.answers.note(made);
  if (!made) {
    state.core.noteReturned(page.kind, page.bytes());
    return made.error();
  }
  page.handle = made.value();
  page.made = true;
  ++state.counters.created;
  Heap& heap = *page.current->range->home;
  const MutexLock lock(heap.mutex());
  state.count(page, &heap, page.counted_as);
  return {};
}

}  // namespace

Status makeAndMap(State& state, PhysicalPage& page) {
  Device& device = state.core.device;
  MemoryHooks& hooks = state.core.memory_hooks;
  for (Mapping* mapping : page.mappings) state.table.endWithdrawal(*mapping);
  if (!page.made) {
    if (Status made = make(state, page); !made.ok()) return made;
  }
  for (Mapping* mapping : page.mappings) {
    if (mapping->mapped) continue;
    if (hooks.on()) hooks.expect(State::noticeOf(page, *mapping->range, mapping->unit));
    const Status mapped = device.map(mapping->deviceAddress(), page.bytes(), page.handle);
    if (!mapped.ok()) {
      if (hooks.on()) hooks.gone(mapping->deviceAddress());
      return mapped;
    }
    mapping->mapped = true;
  }
  // Also where it was mapped before: whether access was set there is not known.
  for (const Mapping* mapping : page.mappings) {
    const Status set = device.setAccess(mapping->deviceAddress(), page.bytes());
    if (!set.ok()) return set;
  }
  return {};
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

// Each page may be filled in two pieces that end within holes.
void prepareWake(Heap& heap) {
  std::size_t pages = 1;
  forEachCurrent(heap, [&](const Mapping&) { ++pages; });
  prepareMoves(heap, pages);
}

void wake(Heap& heap) noexcept {
  if (!heap.asleep()) return;
  heap.wake();
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
