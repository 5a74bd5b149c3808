#include "interop/report/reserved.hpp"

#include <algorithm>

namespace cistern::report {

using recording::Event;
using recording::EventKind;

std::int64_t reservedChange(const Event& event) {
  switch (event.kind) {
    case EventKind::kReserve:
    case EventKind::kMap:
      return std::int64_t(event.value);
    case EventKind::kRelease:
    case EventKind::kUnmap:
      return -std::int64_t(event.value);
    default:
      return 0;
  }
}

void ReservedMap::apply(const Event& event) {
  if (reservedChange(event) == 0) return;
  remove(event.address, event.address + event.value);
  if (event.kind == EventKind::kReserve) add(event, false);
  if (event.kind == EventKind::kMap) add(event, true);
}

void ReservedMap::add(const Event& event, bool in_pages) {
  ranges_[event.address] = {event.address, event.value, event.pool, event.stream, in_pages};
  bytes_ += event.value;
}

void ReservedMap::remove(std::uint64_t begin, std::uint64_t end) {
  auto at = ranges_.upper_bound(begin);
  if (at != ranges_.begin()) --at;
  while (at != ranges_.end() && at->first < end) {
    const ReservedRange range = at->second;
    const std::uint64_t range_end = range.address + range.bytes;
    if (range_end <= begin) {
      ++at;
      continue;
    }
    at = ranges_.erase(at);
    bytes_ -= std::min(range_end, end) - std::max(range.address, begin);
    const auto keep = [&](std::uint64_t from, std::uint64_t to) {
      if (from >= to) return;
      ReservedRange part = range;
      part.address = from;
      part.bytes = to - from;
      ranges_[from] = part;
    };
    keep(range.address, begin);
    keep(end, range_end);
  }
}

std::vector<ReservedRange> ReservedMap::ranges() const {
  std::vector<ReservedRange> all;
  for (const auto& [address, range] : ranges_) all.push_back(range);
  return all;
}

ReservedMap reservedAfter(const recording::Recording& recording, std::uint64_t done) {
  ReservedMap map;
  for (std::uint64_t number = 0; number < done; ++number) map.apply(recording.events[number]);
  return map;
}

}  // namespace cistern::report
