#include "allocator/engine/event_pool.hpp"

#include <new>

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

void EventPool::destroySpares() noexcept {
  const MutexLock lock(mutex_);
  for (Event event : spare_) (void)device_.destroyEvent(event);
  spare_.clear();
}

}  // namespace cistern
