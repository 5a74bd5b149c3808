#include "interop/recording/recording_model.hpp"

#include <algorithm>

namespace cistern::recording {

std::uint64_t peakRequested(const Recording& recording) {
  std::vector<std::uint64_t> bytes;  // by allocation
  bytes.reserve(recording.allocations);
  std::uint64_t live = 0, peak = 0;
  for (const Event& event : recording.events) {
    if (event.kind == EventKind::kAllocate) {
      bytes.push_back(event.value);
      live += event.value;
      peak = std::max(peak, live);
    } else if (event.kind == EventKind::kFree) {
      live -= bytes[event.value];
    }
  }
  return peak;
}

}  // namespace cistern::recording
