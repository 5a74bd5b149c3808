#include "allocator/engine/backing/imports.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace cistern {

namespace {

MemoryNotice noticeOf(Address base, std::uint64_t bytes) {
  MemoryNotice notice;
  notice.address = base;
  notice.bytes = bytes;
  notice.imported = true;
  return notice;
}

}  // namespace

void Imports::noteOpened(const ImportedRange& range) {
  const MutexLock lock(mutex_);
  const auto at = opened_.insert_or_assign(range.base, range.bytes).first;
  try {
    hooks_->joined(noticeOf(range.base, range.bytes));
  } catch (...) {
    opened_.erase(at);
    throw;
  }
}

// Under the lock: a range that goes meanwhile would be told of as one that is there.
void Imports::tellPresent() {
  const MutexLock lock(mutex_);
  for (const auto& [base, bytes] : opened_) hooks_->addPresent(noticeOf(base, bytes));
}

void Imports::giveBack(std::list<ImportedRange>& ranges) noexcept {
  if (!made_.isHere() || !driverMayBeCalled()) return;
  std::list<ImportedRange> now;
  while (!ranges.empty()) {
    std::list<ImportedRange> one;
    one.splice(one.end(), ranges, ranges.begin());
    if (!withdraw(one)) now.splice(now.end(), one);
  }
  if (!now.empty()) giveBackNow(now);
  hooks_->deliver();
}

// False if hooks need not hear of the range.
bool Imports::withdraw(std::list<ImportedRange>& range) noexcept {
  const auto at = range.begin();
  const MutexLock lock(mutex_);
  opened_.erase(at->base);
  if (!hooks_->on() || !hooks_->withdraw(at->base, *this, &*at)) return false;
  withdrawn_.splice(withdrawn_.end(), range);
  return true;
}

void Imports::finish(void* range) noexcept {
  std::list<ImportedRange> one;
  {
    const MutexLock lock(mutex_);
    const auto at =
        std::ranges::find_if(withdrawn_, [range](const ImportedRange& of) { return &of == range; });
    one.splice(one.end(), withdrawn_, at);
  }
  hooks_->gone(one.front().base);  // nobody gets it back, whenever the device does
  giveBackNow(one);
}

// It is not known whose work uses them. In a child of fork, and at exit, the driver may not be
// called any more.
void Imports::giveBackNow(std::list<ImportedRange>& ranges) noexcept {
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
  if (!driverMayBeCalled()) return;
  std::list<ImportedRange> ranges;
  {
    const MutexLock lock(mutex_);
    ranges.swap(left_);
  }
  giveBackNow(ranges);
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
