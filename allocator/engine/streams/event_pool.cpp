#include "allocator/engine/streams/event_pool.hpp"

#include <new>

#include "allocator/base/process.hpp"

namespace cistern {

Result<SharedEvent> EventPool::take() noexcept try {
  const auto taken = std::make_shared<Taken>(*this);
  const SharedEvent event(taken, &taken->event);
  {
    const MutexLock lock(mutex_);
    if (!spare_.empty()) {
      taken->event = spare_.back();
      spare_.pop_back();
      return event;
    }
    // So that giving it back never fails; in steps, as each copies what is there.
    if (spare_.capacity() <= made_) spare_.reserve(2 * made_ + 1);
    ++made_;
  }
  const Result<Event> fresh = device_.createEvent();
  if (fresh) {
    taken->event = fresh.value();
    return event;
  }
  const MutexLock lock(mutex_);
  --made_;
  return fresh.error();
} catch (const std::bad_alloc&) {
  return DeviceError{Call::kCreateEvent, ErrorKind::kOther, 0, "no host memory", {}};
}

EventPool::Taken::~Taken() {
  if (event == Event{}) return;
  const MutexLock lock(pool.mutex_);
  pool.spare_.push_back(event);
}

EventPool::~EventPool() {
  if (!driverMayBeCalled()) return;
  for (Event event : spare_) (void)device_.destroyEvent(event);
}

}  // namespace cistern
