// The device calls that bring pages to their places, and take them away again. See mover.hpp.
#include <algorithm>

#include "allocator/engine/pages/mover.hpp"

namespace cistern::pages {

// One call gives access to a run of pages that follow each other.
bool Mover::mapAll() {
  std::sort(steps_.begin(), steps_.end(),
            [](const Step& a, const Step& b) { return a.unit < b.unit; });
  const std::uint64_t since = ground_.device.hostNanoseconds();
  std::size_t mapped = 0;
  for (Step& step : steps_) {
    if (step.revived) continue;
    if (!mapOne(step)) return false;
    ++mapped;
  }
  for (std::size_t from = 0, to = 0; from < steps_.size(); from = std::max(to, from + 1)) {
    for (to = from; to < steps_.size() && !steps_[to].revived; ++to) {
      if (to > from && steps_[to].unit != steps_[to - 1].to->endUnit()) break;
    }
    if (to > from && !allowAccess(from, to)) return false;
  }
  const double took = double(ground_.device.hostNanoseconds() - since);
  if (mapped > 0) ground_.map_cost.note(took / double(mapped));
  return true;
}

// All that may fail on the host comes before the call.
bool Mover::mapOne(Step& step) {
  Mapping& mapping = ground_.table.addMapping(*step.page, *window_.range, step.unit);
  const Status mapped =
      ground_.device.map(mapping.deviceAddress(), mapping.bytes(), step.page->handle);
  ground_.noteAnswer(mapped);
  if (mapped) {
    step.to = &mapping;
  } else {
    ground_.table.removeMapping(mapping);
  }
  return mapped.ok();
}

bool Mover::allowAccess(std::size_t from, std::size_t to) {
  const Address begin = steps_[from].to->deviceAddress();
  const Mapping& last = *steps_[to - 1].to;
  const Status allowed =
      ground_.device.setAccess(begin, last.deviceAddress() + last.bytes() - begin);
  ground_.noteAnswer(allowed);
  for (std::size_t i = from; allowed && i < to; ++i) steps_[i].to->accessible = true;
  return allowed.ok();
}

// A mapping that will not go stays as a stale one, which harms nobody; a page that the device will
// not take back stays as a spare, or an orphan, and is this heap's in the books.
void Mover::unmapAll() noexcept {
  for (Step& step : steps_) {
    if (step.revived) continue;
    if (step.to != nullptr && ground_.device.unmap(step.to->deviceAddress(), step.to->bytes()))
      ground_.table.removeMapping(*step.to);
    step.to = nullptr;
    if (step.source == nullptr) abandon(*step.page);
  }
}

void Mover::abandon(PhysicalPage& page) noexcept {
  if (page.mappings.empty()) {
    ground_.table.makeSpare(page);
    if (ground_.release(page)) return;
  } else {
    ++ground_.orphans;
  }
  if (page.counted_by != nullptr) return;
  const MutexLock lock(heap_.mutex());
  ground_.count(page, &heap_, request_.kind);
}

}  // namespace cistern::pages
