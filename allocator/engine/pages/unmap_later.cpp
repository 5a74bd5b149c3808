// What can wait: stale mappings that have become too many, and what emptyCache found still in use.
// In the background, or at the next miss where there is no thread for it. See page_backing.hpp.
#include "allocator/base/process.hpp"
#include "allocator/engine/pages/page_backing.hpp"
#include "allocator/engine/pages/release.hpp"

namespace cistern {

using namespace pages;

std::size_t PageBacking::mostStale() const {
  constexpr std::size_t kOfEachPage = 2, kLeast = 64;
  return ground_.table.pages().size() * kOfEachPage + kLeast;
}

bool PageBacking::hasUnmapsToDo() const {
  if (without(Mechanism::kUnmapLater)) return !drains_.empty();
  return !drains_.empty() || ground_.table.staleMappings() > mostStale();
}

// Without a thread: at the next miss.
void PageBacking::unmapLater() noexcept {
  if (!hasUnmapsToDo()) return;
  const BackgroundAccount account;
  ground_.clearing_up = true;
  try {
    (void)drain();
    (void)unmapStale(ground_, mostStale(), SIZE_MAX);
  } catch (const std::bad_alloc&) {
    // The host is short of memory: the next miss does it.
  }
  ground_.clearing_up = false;
}

Background::Next PageBacking::unmapSome() {
  if (!driverMayBeCalled()) return Background::Next::kNothing;
  const BackgroundAccount account;
  const MutexLock lock(mutex_);
  ground_.clearing_up = true;
  const Background::Next next = unmapPiece();
  ground_.clearing_up = false;
  return next;
}

Background::Next PageBacking::unmapPiece() noexcept {
  constexpr std::size_t kAtATime = 8;  // others may want the lock
  try {
    const bool drained = drain();
    const bool retired = unmapStale(ground_, mostStale(), kAtATime) > 0;
    if (!hasUnmapsToDo()) return Background::Next::kNothing;
    return drained || retired ? Background::Next::kMore : Background::Next::kLater;
  } catch (const std::bad_alloc&) {
    return Background::Next::kLater;
  }
}

// Gives back what emptyCache found still in use. True when something went.
bool PageBacking::drain() {
  constexpr std::uint64_t kAtATime = 64 * kUnit;  // others may want the lock
  bool any = false;
  std::erase_if(drains_, [&](const Drain& drain) {
    mutex_.assertHeld();
    ReleaseRule rule{UINT32_MAX, kAtATime};
    {
      ground_.refresh(*drain.heap);
      const MutexLock lock(drain.heap->mutex());
      const Completion& known = drain.heap->completion();
      if (!known.complete(drain.until)) return false;
      rule.latest_epoch = known.stampOf(drain.until);
    }
    const Released released = releaseFree(ground_, *drain.heap, rule);
    any |= released.bytes > 0;
    return !released.more_later && released.bytes < kAtATime;
  });
  return any;
}

}  // namespace cistern
