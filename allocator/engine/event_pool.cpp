#include "allocator/engine/event_pool.hpp"

namespace cistern {

Result<Event> EventPool::take() {
  {
    const MutexLock lock(mutex_);
    if (!spare_.empty()) {
      const Event event = spare_.back();
      spare_.pop_back();
      return event;
    }
  }
  return device_.createEvent();
}

void EventPool::give(Event event) {
  const MutexLock lock(mutex_);
  spare_.push_back(event);
}

void EventPool::destroySpares() noexcept {
  const MutexLock lock(mutex_);
  for (Event event : spare_) (void)device_.destroyEvent(event);
  spare_.clear();
}

}  // namespace cistern
