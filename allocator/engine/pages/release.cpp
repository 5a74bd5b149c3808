#include "allocator/engine/pages/release.hpp"

#include <algorithm>
#include <utility>

#include "allocator/base/bounds.hpp"
#include "allocator/base/steps.hpp"
#include "allocator/device/background_account.hpp"
#include "allocator/engine/pages/placing.hpp"

namespace cistern::pages {

bool lastUseIsComplete(State& state, const Mapping& mapping, bool ask) {
  Heap& home = *mapping.range->home;
  const auto known = [&] {
    const MutexLock lock(home.mutex());
    return home.completion().complete(mapping.last_use);
  };
  if (known()) return true;
  if (ask) state.refresh(home);
  return ask && known();
}

namespace {

// Takes out what the rule names, with room for each to come back.
std::vector<Mapping*> detach(State& state, Heap& heap, const ReleaseRule& rule, bool& more_later) {
  const MutexLock lock(heap.mutex());
  const FreePageScan scan(heap, state.number);
  std::vector<Mapping*> mappings;
  for (Mapping* mapping : scan.freeMappings()) {
    if (!mapping->page->mayLeave()) continue;
    if (rule.only_of_device && mapping->page->kind != MemoryKind::kPages) continue;
    if (mapping->last_use > rule.latest_epoch || mapping->units() > rule.most_units) continue;
    const bool complete = heap.completion().complete(mapping->last_use);
    more_later |= !complete;
    if (complete) mappings.push_back(mapping);
  }
  std::ranges::sort(mappings, {}, &Mapping::last_use);
  std::uint64_t bytes = 0;
  std::size_t count = 0;
  for (; count < mappings.size() && bytes < rule.bytes; ++count) bytes += mappings[count]->bytes();
  mappings.resize(count);
  reserve(heap, mappings);
  return mappings;
}

// False when some mapping of the page is still used or will not go.
bool unmapAll(State& state, Mapping& current) noexcept {
  PhysicalPage& page = *current.page;
  for (std::size_t i = page.mappings.size(); i-- > 0;) {
    Mapping& mapping = *page.mappings[i];
    if (&mapping == &current || mapping.withdrawn) continue;
    if (!lastUseIsComplete(state, mapping, true) || !state.takeAway(mapping)) return false;
  }
  state.table.makeStale(current, MappingTable::Device::kCalled);
  const bool gone = state.takeAway(current);
  if (!gone) state.table.makeCurrent(current);
  return gone;
}

// False, and the page is the heap's as before, when it cannot go. A page with withdrawn mappings
// follows these.
bool giveBack(State& state, Heap& heap, Mapping& current) noexcept {
  PhysicalPage& page = *current.page;
  const SizeKind kind = current.range->kind;
  const bool gone = unmapAll(state, current);
  {
    const MutexLock lock(heap.mutex());
    heap.layout(kind).endReserve();
    if (!gone) putIn(heap, current, current.last_use);
  }
  if (gone && page.mappings.empty()) state.release(page);
  return gone;
}

// Removes the oldest stale mappings whose last use is complete until at most `keep` are left, but
// no more than `most`. True if any went. A heap's stream is asked once in a row.
bool unmapStale(State& state, std::size_t keep, std::size_t most) {
  const std::uint64_t before = state.counters.retired;
  const Heap* asked = nullptr;
  std::list<Mapping>& stale = state.table.staleMappings();
  for (auto next = stale.begin(); next != stale.end() && stale.size() > keep && most > 0;) {
    Mapping& mapping = *next++;
    Heap* const home = mapping.range->home;
    const bool ask = std::exchange(asked, home) != home;
    if (!lastUseIsComplete(state, mapping, ask) || !state.takeAway(mapping)) continue;
    ++state.counters.retired;
    --most;
  }
  return state.counters.retired != before;
}

// `any`: whether something went back to the device.
bool isDrained(State& state, const Drain& drain, bool& any) {
  constexpr std::uint64_t kAtATime = 64 * kUnit;  // others may want the lock
  state.refresh(*drain.heap);
  {
    const MutexLock lock(drain.heap->mutex());
    if (!drain.heap->completion().complete(drain.until)) return false;
  }
  const Released released = releaseFree(state, *drain.heap, {drain.until, kAtATime});
  any |= released.bytes > 0;
  return !released.more_later && released.bytes < kAtATime;
}

}  // namespace

Released releaseFree(State& state, Heap& heap, const ReleaseRule& rule) {
  state.refresh(heap);
  return releaseComplete(state, heap, rule);
}

Released releaseComplete(State& state, Heap& heap, const ReleaseRule& rule) {
  Released released;
  for (Mapping* mapping : detach(state, heap, rule, released.more_later)) {
    const std::uint64_t bytes = mapping->bytes();
    if (giveBack(state, heap, *mapping)) {
      released.bytes += bytes;
    } else {
      released.more_later = true;
    }
  }
  return released;
}

void finishWithdrawal(State& state, Mapping& mapping) noexcept {
  MemoryHooks& hooks = state.core.memory_hooks;
  PhysicalPage& page = *mapping.page;
  const Address address = mapping.deviceAddress();
  const bool goes = mapping.withdrawn;
  state.table.endWithdrawal(mapping);
  if (!goes || !state.core.device.unmap(address, mapping.bytes())) return hooks.stays(address);
  hooks.gone(address);
  mapping.mapped = false;
  if (mapping.removable()) state.table.removeMapping(mapping);
  if (page.spare()) {
    if (page.mappings.empty()) (void)state.release(page);
  } else if (page.asleep && std::ranges::none_of(page.mappings, &Mapping::mapped)) {
    page.made = !state.returnToDevice(page);
  }
}

// A mapping that a spare page still has was never used, or its last use is complete. Pages that are
// leaving already do not count again.
std::uint64_t releaseSpares(State& state) noexcept {
  std::uint64_t released = 0;
  std::list<PhysicalPage>& pages = state.table.pages();
  for (auto next = pages.begin(); next != pages.end() && next->current == nullptr;) {
    PhysicalPage& page = *next++;
    noteSteps(1);
    if (!page.spare()) continue;
    const std::uint64_t bytes = page.bytes();
    bool leaves = page.mappings.empty();
    for (std::size_t i = page.mappings.size(); i-- > 0;) {
      if (page.mappings[i]->withdrawn) continue;
      if (!state.takeAway(*page.mappings[i])) return released;
      leaves = true;
    }
    if (page.mappings.empty() && !state.release(page)) return released;
    released += leaves ? bytes : 0;
  }
  return released;
}

// ---- Later --------------------------------------------------------------------------------------

std::size_t mostStale(const State& state) {
  constexpr std::size_t kOfEachPage = 4, kLeast = bound(64);
  return state.table.pages().size() * kOfEachPage + kLeast;
}

bool isClearingDue(const State& state) {
  const bool too_many = state.table.staleMappings().size() > mostStale(state);
  return !state.drains.empty() || (too_many && !without(Mechanism::kUnmapLater));
}

// Nothing here is done for a verb on some stream.
Background::Next clearUp(State& state, bool all) noexcept {
  constexpr std::size_t kAtATime = bound(8);
  if (!isClearingDue(state)) return Background::Next::kNothing;
  const BackgroundAccount account;
  bool any = false;
  state.clearing_up = true;
  try {
    std::erase_if(state.drains,
                  [&](const auto& drain) { return isDrained(state, drain.second, any); });
    any |= unmapStale(state, mostStale(state), all ? SIZE_MAX : kAtATime);
  } catch (const std::bad_alloc&) {
    any = false;  // the host is short of memory
  }
  state.clearing_up = false;
  if (!isClearingDue(state)) return Background::Next::kNothing;
  return any ? Background::Next::kMore : Background::Next::kLater;
}

// The thread in the background makes no marks. So one is made here, also for other heaps: the pages
// may still be used through their addresses.
void drainLater(State& state, Heap& heap) {
  state.core.progress.refresh(state.core.heaps.all());
  const MutexLock lock(heap.mutex());
  std::uint64_t until = heap.completion().now();
  if (!heap.completion().anyUnmarked()) --until;  // nothing is stamped with the present one
  state.drains[heap.number()] = {&heap, until};
}

}  // namespace cistern::pages
