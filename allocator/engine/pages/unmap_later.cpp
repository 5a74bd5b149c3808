#include "allocator/engine/pages/unmap_later.hpp"

#include "allocator/device/background.hpp"
#include "allocator/engine/engine.hpp"
#include "allocator/engine/pages/release.hpp"

namespace cistern::pages {
namespace {

/// While there is one, nothing is done for a verb on some stream.
class ClearingUp {
 public:
  explicit ClearingUp(Ground& ground) : ground_(ground) { ground_.clearing_up = true; }
  ~ClearingUp() { ground_.clearing_up = false; }
  ClearingUp(const ClearingUp&) = delete;
  ClearingUp& operator=(const ClearingUp&) = delete;

 private:
  const BackgroundAccount account_;
  Ground& ground_;
};

}  // namespace

void UnmapLater::unmapAll() noexcept {
  if (!isDue()) return;
  const ClearingUp clearing(ground_);
  try {
    (void)drain();
    (void)unmapStale(ground_, mostStale(), SIZE_MAX);
  } catch (const std::bad_alloc&) {
    // The host is short of memory: the next miss does it.
  }
}

Background::Next UnmapLater::unmapSome() noexcept {
  constexpr std::size_t kAtATime = 8;
  const ClearingUp clearing(ground_);
  try {
    const bool drained = drain();
    const bool unmapped = unmapStale(ground_, mostStale(), kAtATime) > 0;
    if (!isDue()) return Background::Next::kNothing;
    return drained || unmapped ? Background::Next::kMore : Background::Next::kLater;
  } catch (const std::bad_alloc&) {
    return Background::Next::kLater;
  }
}

// True when something went back to the device.
bool UnmapLater::drain() {
  bool any = false;
  std::erase_if(drains_, [&](const Drain& drain) { return isDrained(drain, any); });
  return any;
}

bool UnmapLater::isDrained(const Drain& drain, bool& any) {
  constexpr std::uint64_t kAtATime = 64 * kUnit;  // others may want the lock
  ReleaseRule rule{UINT32_MAX, kAtATime};
  ground_.refresh(*drain.heap);
  {
    const MutexLock lock(drain.heap->mutex());
    const Completion& known = drain.heap->completion();
    if (!known.complete(drain.until)) return false;
    rule.latest_epoch = known.stampOf(drain.until);
  }
  const Released released = releaseFree(ground_, *drain.heap, rule);
  any |= released.bytes > 0;
  return !released.more_later && released.bytes < kAtATime;
}

void UnmapLater::drainLater(Heap& heap) {
  ground_.core.progress.refresh(heap);
  const MutexLock lock(heap.mutex());
  std::erase_if(drains_, [&](const Drain& drain) { return drain.heap == &heap; });
  EpochMark until = heap.completion().now();
  if (!heap.completion().anyUnmarked()) --until.epoch;  // nothing is stamped with the present one
  drains_.push_back({&heap, until});
}

}  // namespace cistern::pages
