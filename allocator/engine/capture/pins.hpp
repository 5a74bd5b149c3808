// Memory that must stay where it is because a graph that may be replayed knows its addresses.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "allocator/base/mutex.hpp"

namespace cistern {

struct HeapSegment;
namespace pages {
struct Mapping;
}

/// What names a holder of pins: a capture, a part of one, or an export. Unique among those that
/// overlap; never 0, nor Request::kLent.
inline std::uint32_t nextHolder() {
  static std::atomic<std::uint32_t> next{1};
  const std::uint32_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number != 0 && number != UINT32_MAX ? number : nextHolder();
}

/// What one graph holds in place: each segment, or mapping of a page, once.
struct Pins {
  std::vector<pages::Mapping*> mappings;
  std::vector<HeapSegment*> segments;
  std::vector<std::shared_ptr<void>> graphs;  ///< that became part of it: what they hold
};

/// Which segments are held, where memory comes in segments; a mapping knows it by itself. Own lock,
/// a leaf.
class PinnedSegments {
 public:
  /// Pins the segment for holder `number`, unless that has pinned it already. Throws
  /// std::bad_alloc; then it is not pinned for it.
  void pin(HeapSegment& segment, std::uint64_t number, Pins& pins) {
    const MutexLock lock(mutex_);
    State& state = states_[&segment];
    if (state.last == number) return;
    pins.segments.push_back(&segment);
    state.last = number;
    ++state.count;
  }
  void unpin(HeapSegment& segment) noexcept {
    const MutexLock lock(mutex_);
    const auto it = states_.find(&segment);
    if (--it->second.count == 0) states_.erase(it);
  }
  bool pinned(const HeapSegment& segment) const {
    const MutexLock lock(mutex_);
    const auto it = states_.find(&segment);
    return it != states_.end() && it->second.count > 0;
  }

 private:
  struct State {
    std::uint32_t count = 0;  ///< 0 only where the host was short of memory for the first pin
    std::uint64_t last = 0;   ///< the holder that pinned it last
  };
  mutable Mutex mutex_;
  std::unordered_map<const HeapSegment*, State> states_ CISTERN_GUARDED_BY(mutex_);
};

}  // namespace cistern
