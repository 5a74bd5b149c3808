#include "allocator/engine/backing/imports.hpp"

#include <iterator>
#include <numeric>

namespace cistern {

// It is not known whose work uses them. In a child of fork, and at exit, the driver may not be
// called any more.
void Imports::giveBack(std::list<ImportedRange>& ranges) noexcept {
  if (!made_.isHere() || !driverMayBeCalled()) return;
  const RelaxedCaptureMode relaxed(device_);
  bool idle = false;
  for (auto range = ranges.begin(); range != ranges.end();) {
    idle = idle || range->mapped.empty() || device_.synchronizeDevice().ok();
    const auto next = std::next(range);
    if (idle && returnToDevice(*range)) ranges.erase(range);
    range = next;
  }
  const MutexLock lock(mutex_);
  left_.splice(left_.end(), ranges);
  any_left_.store(!left_.empty(), std::memory_order_relaxed);
}

void Imports::retry() noexcept {
  if (!any_left_.load(std::memory_order_relaxed) || !made_.isHere()) return;
  std::list<ImportedRange> ranges;
  {
    const MutexLock lock(mutex_);
    ranges.swap(left_);
  }
  giveBack(ranges);
}

// The last page goes first, so that what is mapped still begins at the base.
bool Imports::returnToDevice(ImportedRange& range) noexcept {
  std::vector<std::uint64_t>& mapped = range.mapped;
  std::uint64_t end = std::accumulate(mapped.begin(), mapped.end(), std::uint64_t{0});
  while (!mapped.empty()) {
    end -= mapped.back();
    if (!device_.unmap(range.base + end, mapped.back())) return false;
    mapped.pop_back();
  }
  return device_.freeReservation(range.base, range.bytes).ok();
}

}  // namespace cistern
