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
    spare_.reserve(made_ + 1);  // so that give never fails
    ++made_;
  } catch (const std::bad_alloc&) {
    return DeviceError{Call::kCreateEvent, ErrorKind::kOther, 0, "no host memory", {}};
  }
  return device_.createEvent();
}

void EventPool::give(Event event) noexcept {
  const MutexLock lock(mutex_);
  spare_.push_back(event);
}

EventPool::~EventPool() {
  if (!driverMayBeCalled()) return;
  for (Event event : spare_) (void)device_.destroyEvent(event);
}

}  // namespace cistern
