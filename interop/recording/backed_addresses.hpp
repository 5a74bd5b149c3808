// Which addresses have memory behind them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "allocator/base/range_map.hpp"
#include "interop/recording/recording_model.hpp"

namespace cistern::recording {

/// Reserved addresses from begin to end, of one segment or of pages in one.
struct Reserved {
  std::uint64_t begin = 0, end = 0;
  std::uint32_t stream = 0;
  std::uint32_t pool = 0;
  bool expandable = false;
};

/// The end of so many bytes, or the last address if they reach beyond it.
inline std::uint64_t endOf(std::uint64_t begin, std::uint64_t bytes) {
  return begin + std::min(bytes, std::numeric_limits<std::uint64_t>::max() - begin);
}

using ReservedRanges = RangeMap<Reserved>;

/// Whether an event takes memory, the device's or the host's, or puts some behind addresses.
inline bool takesMemory(const Event& event) {
  return event.kind == EventKind::kReserve || event.kind == EventKind::kMap;
}
/// Whether an event gives memory back, or takes it away from addresses.
inline bool givesMemoryBack(const Event& event) {
  return event.kind == EventKind::kRelease || event.kind == EventKind::kUnmap;
}

/// Does an event to the ranges; one that is not of memory changes nothing. Pre: it is one of the
/// recording's.
inline void applyTo(ReservedRanges& ranges, const Recording& recording, const Event& event) {
  const Place& place = recording.placeOf(event);
  const std::uint64_t end = endOf(place.address, event.value);
  if (takesMemory(event))
    ranges.add({place.address, end, event.stream, place.pool, event.kind == EventKind::kMap});
  if (givesMemoryBack(event)) ranges.remove(place.address, end);
}

}  // namespace cistern::recording
