#include "interop/recording/reserved_before.hpp"

namespace cistern::recording {
namespace {

using trace::SnapshotAction;
using trace::SnapshotEntry;

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
    ranges_.add({segment.address, endOf(segment.address, segment.bytes), segment.stream,
                 segment.pool, segment.expandable});
    of_several_pools_ = of_several_pools_ || segment.pool > 0;
  }
  for (std::size_t i = history.entries.size(); i-- > 0;) {
    const SnapshotEntry& entry = history.entries[i];
    if (reserves(entry.action())) {
      const std::uint32_t pool = entry.pool > 0 ? entry.pool : poolAt(entry.address);
      if (pool > 0) pools_[i] = pool;
      of_several_pools_ = of_several_pools_ || pool > 0;
      ranges_.remove(entry.address, endOf(entry.address, entry.bytes));
    } else if (releases(entry.action())) {
      ranges_.add(rangeOf(entry));
      of_several_pools_ = of_several_pools_ || entry.pool > 0;
    }
  }
  for (const auto& [begin, range] : ranges_.all()) at_start_.push_back(range);
}

std::uint32_t ReservedBefore::take(const SnapshotEntry& entry, std::size_t index) {
  if (releases(entry.action())) {
    const std::uint32_t pool = entry.pool > 0 ? entry.pool : poolAt(entry.address);
    ranges_.remove(entry.address, endOf(entry.address, entry.bytes));
    return pool;
  }
  const auto found = pools_.find(index);
  Reserved range = rangeOf(entry);
  range.pool = found == pools_.end() ? 0 : found->second;
  ranges_.add(range);
  return range.pool;
}

std::uint32_t ReservedBefore::poolAt(std::uint64_t address) const {
  if (!of_several_pools_) return 0;
  const Reserved* const range = ranges_.at(address);
  return range ? range->pool : 0;
}

}  // namespace cistern::recording
