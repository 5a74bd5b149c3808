#include "allocator/engine/event_pool.hpp"

#include <new>

#include "allocator/base/process.hpp"

namespace cistern {

Result<Event> EventPool::take() noexcept {
  try {
    const MutexLock lock(mutex_);
    if (!spare_.empty()) {
      const Event event = spare_.back();
      spare_.pop_back();
      return event;
    }
    // So that give never fails; in steps, as each copies what is there.
    if (spare_.capacity() <= made_) spare_.reserve(2 * made_ + 1);
    ++made_;
  } catch (const std::bad_alloc&) {
    return DeviceError{Call::kCreateEvent, ErrorKind::kOther, 0, "no host memory", {}};
  }
  Result<Event> event = device_.createEvent();
  if (!event) {
    const MutexLock lock(mutex_);
    --made_;
  }
  return event;
}

void EventPool::give(Event event) noexcept {
  const MutexLock lock(mutex_);
  spare_.push_back(event);
}

std::size_t EventPool::made() const noexcept {
  const MutexLock lock(mutex_);
  return made_;
}

EventPool::~EventPool() {
  if (!driverMayBeCalled()) return;
  for (Event event : spare_) (void)device_.destroyEvent(event);
}

}  // namespace cistern
