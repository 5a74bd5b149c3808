#include "allocator/engine/pages/ground.hpp"

#include "allocator/engine/engine.hpp"

namespace cistern::pages {

Ground::Ground(Engine& on, MemoryBacking& by, Counters& c)
    : core(on), backing(by), counters(c), table(&on.log), cost(on.options.recycle_budget) {}

bool Ground::recycles() const {
  return !without(Mechanism::kRecycling) && core.options.recycle != Recycle::kOff;
}

void Ground::refresh(Heap& heap) {
  clearing_up ? core.progress.refreshByEvent(heap) : core.progress.refresh(heap);
}

void Ground::count(PhysicalPage& page, Heap* heap, SizeKind kind) noexcept {
  if (page.counted_by != nullptr && page.counted_by != heap) page.late = false;
  const bool real = page.counted_by == nullptr || heap == nullptr;
  if (Heap* const from = page.counted_by) {
    from->mutex().assertHeld();
    from->counts().countBacking(page.counted_as, page.bytes(), -1, real);
  }
  if (heap) {
    heap->mutex().assertHeld();
    heap->counts().countBacking(kind, page.bytes(), +1, real);
    if (!real) heap->counts().totals().moveBacking(page.counted_as, kind, page.bytes());
  }
  page.counted_by = heap;
  page.counted_as = kind;
}

bool Ground::remove(Mapping& mapping) noexcept {
  if (!core.device.unmap(mapping.deviceAddress(), mapping.bytes())) return false;
  table.removeMapping(mapping);
  return true;
}

bool Ground::release(PhysicalPage& page) noexcept {
  if (!core.device.releasePage(page.handle)) return false;
  if (Heap* heap = page.counted_by) {
    const MutexLock lock(heap->mutex());
    count(page, nullptr, page.counted_as);
  }
  core.limit.giveBack(page.bytes());
  ++counters.returned;
  table.removePage(page);
  return true;
}

}  // namespace cistern::pages
