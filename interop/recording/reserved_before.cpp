#include "interop/recording/reserved_before.hpp"

#include <algorithm>
#include <limits>

namespace cistern::recording {
namespace {

using trace::SnapshotAction;
using trace::SnapshotEntry;

std::uint64_t endOf(std::uint64_t begin, std::uint64_t bytes) {
  return begin + std::min(bytes, std::numeric_limits<std::uint64_t>::max() - begin);
}

bool reserves(SnapshotAction action) {
  return action == SnapshotAction::kSegmentAlloc || action == SnapshotAction::kSegmentMap;
}

bool releases(SnapshotAction action) {
  return action == SnapshotAction::kSegmentFree || action == SnapshotAction::kSegmentUnmap;
}

bool isExpandable(SnapshotAction action) {
  return action == SnapshotAction::kSegmentMap || action == SnapshotAction::kSegmentUnmap;
}

Reserved rangeOf(const SnapshotEntry& entry) {
  return {entry.address, endOf(entry.address, entry.bytes), entry.stream, entry.pool,
          isExpandable(entry.action())};
}

}  // namespace

ReservedBefore::ReservedBefore(const trace::DeviceHistory& history) {
  for (const trace::SnapshotSegment& segment : history.segments) {
    add({segment.address, endOf(segment.address, segment.bytes), segment.stream, segment.pool,
         segment.expandable});
    of_several_pools_ = of_several_pools_ || segment.pool > 0;
  }
  for (std::size_t i = history.entries.size(); i-- > 0;) {
    const SnapshotEntry& entry = history.entries[i];
    if (reserves(entry.action())) {
      const std::uint32_t pool = entry.pool > 0 ? entry.pool : poolAt(entry.address);
      if (pool > 0) pools_[i] = pool;
      of_several_pools_ = of_several_pools_ || pool > 0;
      remove(entry.address, endOf(entry.address, entry.bytes));
    } else if (releases(entry.action())) {
      add(rangeOf(entry));
      of_several_pools_ = of_several_pools_ || entry.pool > 0;
    }
  }
  for (const auto& [begin, range] : ranges_) at_start_.push_back(range);
}

std::uint32_t ReservedBefore::take(const SnapshotEntry& entry, std::size_t index) {
  if (releases(entry.action())) {
    const std::uint32_t pool = entry.pool > 0 ? entry.pool : poolAt(entry.address);
    remove(entry.address, endOf(entry.address, entry.bytes));
    return pool;
  }
  const auto found = pools_.find(index);
  Reserved range = rangeOf(entry);
  range.pool = found == pools_.end() ? 0 : found->second;
  add(range);
  return range.pool;
}

std::uint32_t ReservedBefore::poolAt(std::uint64_t address) const {
  if (!of_several_pools_) return 0;
  const Reserved* const range = rangeAt(address);
  return range ? range->pool : 0;
}

const Reserved* ReservedBefore::rangeAt(std::uint64_t address) const {
  auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return nullptr;
  const Reserved& range = std::prev(after)->second;
  return address < range.end ? &range : nullptr;
}

void ReservedBefore::add(const Reserved& range) {
  if (range.begin >= range.end) return;
  remove(range.begin, range.end);
  ranges_.emplace(range.begin, range);
}

// A range that reaches over a border is cut there.
void ReservedBefore::remove(std::uint64_t begin, std::uint64_t end) {
  auto at = ranges_.upper_bound(begin);
  if (at != ranges_.begin() && std::prev(at)->second.end > begin) --at;
  while (at != ranges_.end() && at->second.begin < end) {
    const Reserved whole = at->second;
    at = ranges_.erase(at);
    if (whole.begin < begin) {
      Reserved left = whole;
      left.end = begin;
      ranges_.emplace(left.begin, left);
    }
    if (whole.end > end) {
      Reserved right = whole;
      right.begin = end;
      at = ranges_.emplace(right.begin, right).first;
      break;
    }
  }
}

}  // namespace cistern::recording
