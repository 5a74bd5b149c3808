#include "allocator/engine/pages/release.hpp"

#include <algorithm>
#include <utility>

#include "allocator/engine/engine.hpp"
#include "allocator/engine/pages/parking.hpp"
#include "allocator/engine/pages/placing.hpp"

namespace cistern::pages {
namespace {

bool lastUseIsComplete(const Mapping& mapping) {
  Heap& home = *mapping.range->home;
  const MutexLock lock(home.mutex());
  return home.completion().complete(mapping.last_use);
}

// The same, asking the stream if need be.
bool lastUseIsComplete(Ground& ground, const Mapping& mapping) {
  if (lastUseIsComplete(mapping)) return true;
  ground.refresh(*mapping.range->home);
  return lastUseIsComplete(mapping);
}

bool removeMapping(Ground& ground, Mapping& mapping) noexcept {
  if (!ground.core.device.unmap(mapping.deviceAddress(), mapping.bytes())) return false;
  ground.table.removeMapping(mapping);
  return true;
}

// Takes out what the rule names, with room for each to come back.
std::vector<Mapping*> detach(Ground& ground, Heap& heap, const ReleaseRule& rule,
                             bool& more_later) {
  const MutexLock lock(heap.mutex());
  (void)bringBack(ground, heap);
  const FreePageScan scan(heap, ground.scans, Whither::kAnywhere);
  std::vector<Mapping*> mappings;
  for (Mapping* mapping : scan.freeMappings()) {
    if (mapping->last_use.epoch > rule.latest_epoch || mapping->units() > rule.most_units) continue;
    const bool complete = heap.completion().complete(mapping->last_use);
    more_later |= !complete;
    if (complete) mappings.push_back(mapping);
  }
  std::ranges::sort(mappings, {}, [](const Mapping* mapping) { return mapping->last_use.epoch; });
  std::uint64_t bytes = 0;
  std::size_t count = 0;
  for (; count < mappings.size() && bytes < rule.bytes; ++count) bytes += mappings[count]->bytes();
  mappings.resize(count);
  takeOut(heap, mappings);
  for (const Mapping* mapping : mappings) heap.layout(mapping->range->kind).reserveFill();
  return mappings;
}

// False, and the page is the heap's as before, when some mapping of it is still used or will not
// go.
bool giveBack(Ground& ground, Heap& heap, Mapping& current) noexcept {
  PhysicalPage& page = *current.page;
  const PageRange& range = *current.range;
  bool gone = true;
  for (std::size_t i = page.mappings.size(); gone && i-- > 0;) {
    Mapping& mapping = *page.mappings[i];
    gone = &mapping == &current ||
           (lastUseIsComplete(ground, mapping) && removeMapping(ground, mapping));
  }
  if (gone) {
    ground.table.makeStale(current);
    gone = removeMapping(ground, current);
    if (!gone) ground.table.makeCurrent(current);
  }
  {
    const MutexLock lock(heap.mutex());
    heap.layout(range.kind).endReserve();
    if (!gone) putIn(heap, current, current.last_use);
  }
  if (gone) ground.release(page);
  return gone;
}

}  // namespace

std::size_t unmapStale(Ground& ground, std::size_t keep, std::size_t most) {
  if (ground.table.staleMappings() <= keep) return 0;
  std::size_t retired = 0;
  const Heap* asked = nullptr;
  Mapping* next = nullptr;
  for (Mapping* mapping = ground.table.oldestStale(); mapping && retired < most; mapping = next) {
    if (ground.table.staleMappings() <= keep) break;
    next = mapping->beside.younger;
    if (mapping->page->parked && mapping->is_home) continue;  // it comes back through it
    Heap* const home = mapping->range->home;
    const bool ask = std::exchange(asked, home) != home;
    if (ask ? !lastUseIsComplete(ground, *mapping) : !lastUseIsComplete(*mapping)) continue;
    if (!removeMapping(ground, *mapping)) continue;
    ++retired;
    ++ground.counters.retired;
  }
  return retired;
}

void unmapOrphans(Ground& ground) noexcept {
  for (Mapping* mapping = ground.table.oldestStale(); mapping && ground.orphans > 0;) {
    Mapping* const next = mapping->beside.younger;
    if (mapping->page->current == nullptr && !mapping->page->parked) {
      if (!removeMapping(ground, *mapping)) return;
      --ground.orphans;
    }
    mapping = next;
  }
}

Released releaseFree(Ground& ground, Heap& heap, const ReleaseRule& rule) {
  Released released;
  ground.refresh(heap);
  for (Mapping* mapping : detach(ground, heap, rule, released.more_later)) {
    const std::uint64_t bytes = mapping->bytes();
    if (giveBack(ground, heap, *mapping)) {
      released.bytes += bytes;
    } else {
      released.more_later = true;
    }
  }
  return released;
}

}  // namespace cistern::pages
