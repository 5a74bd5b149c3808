#include "interop/report/reserved.hpp"

#include <algorithm>

namespace cistern::report {

std::uint64_t reservedBytesAfter(const recording::Recording& recording, std::uint64_t done) {
  ReservedBytes reserved;
  for (std::uint64_t number = 0; number < done; ++number) reserved.apply(recording.events[number]);
  return reserved.bytes();
}

std::uint64_t mostOnHost(const recording::Recording& recording) {
  ReservedBytes reserved(Location::kHost);
  std::uint64_t most = 0;
  for (const recording::Event& event : recording.events) {
    reserved.apply(event);
    most = std::max(most, reserved.bytes());
  }
  return most;
}

recording::ReservedRanges reservedAfter(const recording::Recording& recording, std::uint64_t done) {
  recording::ReservedRanges ranges;
  for (std::uint64_t number = 0; number < done; ++number) {
    applyTo(ranges, recording, recording.events[number]);
  }
  return ranges;
}

}  // namespace cistern::report
