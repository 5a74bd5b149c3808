#include "allocator/engine/pages/map_calls.hpp"

#include <algorithm>

#include "allocator/engine/engine.hpp"

namespace cistern::pages {
namespace {

// All that may fail on the host comes before the call.
bool mapOne(Ground& ground, PageRange& range, Step& step) {
  Mapping& mapping = ground.table.addMapping(*step.page, range, step.unit);
  const Status mapped =
      ground.core.device.map(mapping.deviceAddress(), mapping.bytes(), step.page->handle);
  ground.noteAnswer(mapped);
  mapped ? void(step.to = &mapping) : ground.table.removeMapping(mapping);
  return mapped.ok();
}

// The run of steps from `from` on that follow each other; it ends before the next revived one.
std::size_t endOfRun(const std::vector<Step>& steps, std::size_t from) {
  std::size_t to = from;
  while (to < steps.size() && !steps[to].revived &&
         (to == from || steps[to].unit == steps[to - 1].to->endUnit()))
    ++to;
  return to;
}

bool allowAccess(Ground& ground, std::vector<Step>& steps, std::size_t from, std::size_t to) {
  const Address begin = steps[from].to->deviceAddress();
  const Mapping& last = *steps[to - 1].to;
  const std::uint64_t bytes = last.deviceAddress() + last.bytes() - begin;
  const Status allowed = ground.core.device.setAccess(begin, bytes);
  ground.noteAnswer(allowed);
  for (std::size_t i = from; allowed && i < to; ++i) steps[i].to->accessible = true;
  return allowed.ok();
}

void abandon(Ground& ground, PhysicalPage& page, Heap& heap, SizeKind kind) noexcept {
  if (page.mappings.empty()) {
    ground.table.makeSpare(page);
    if (ground.release(page)) return;
  } else {
    ++ground.orphans;
  }
  if (page.counted_by != nullptr) return;
  const MutexLock lock(heap.mutex());
  ground.count(page, &heap, kind);
}

}  // namespace

// One call gives access to a run of pages that follow each other.
bool mapAll(Ground& ground, Reservation& reserved) {
  std::vector<Step>& steps = reserved.steps;
  std::ranges::sort(steps, {}, &Step::unit);
  const std::uint64_t since = ground.core.device.hostNanoseconds();
  std::size_t mapped = 0;
  for (Step& step : steps) {
    if (step.revived) continue;
    if (!mapOne(ground, *reserved.window.range, step)) return false;
    ++mapped;
  }
  for (std::size_t from = 0, to = 0; from < steps.size(); from = std::max(to, from + 1)) {
    to = endOfRun(steps, from);
    if (to > from && !allowAccess(ground, steps, from, to)) return false;
  }
  const double took = double(ground.core.device.hostNanoseconds() - since);
  if (mapped > 0) ground.map_cost.note(took / double(mapped));
  return true;
}

// A mapping that will not go stays as a stale one, which harms nobody; a page that the device will
// not take back stays as a spare, or an orphan.
void unmapAll(Ground& ground, Reservation& reserved, Heap& heap, SizeKind kind) noexcept {
  for (Step& step : reserved.steps) {
    if (step.revived) continue;
    if (step.to && ground.core.device.unmap(step.to->deviceAddress(), step.to->bytes()))
      ground.table.removeMapping(*step.to);
    step.to = nullptr;
    if (step.source == nullptr) abandon(ground, *step.page, heap, kind);
  }
}

}  // namespace cistern::pages
