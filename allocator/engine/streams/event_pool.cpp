#include "allocator/engine/streams/event_pool.hpp"

#include <new>

#include "allocator/base/process.hpp"

namespace cistern {

Result<SharedEvent> EventPool::take() noexcept {
  try {
    auto taken = std::make_shared<PooledEvent>(*this);
    {
      const MutexLock lock(mutex_);
      if (!spare_.empty()) {
        taken->event_ = spare_.back();
        spare_.pop_back();
        return SharedEvent(std::move(taken));
      }
      // So that giving it back never fails; in steps, as each copies what is there.
      if (spare_.capacity() <= made_) spare_.reserve(2 * made_ + 1);
      ++made_;
    }
    const Result<Event> event = device_.createEvent();
    if (event) {
      taken->event_ = event.value();
      return SharedEvent(std::move(taken));
    }
    const MutexLock lock(mutex_);
    --made_;
    return event.error();
  } catch (const std::bad_alloc&) {
    return DeviceError{Call::kCreateEvent, ErrorKind::kOther, 0, "no host memory", {}};
  }
}

PooledEvent::~PooledEvent() {
  if (event_ == Event{}) return;
  const MutexLock lock(pool_.mutex_);
  pool_.spare_.push_back(event_);
}

std::size_t EventPool::made() const noexcept {
  const MutexLock lock(mutex_);
  return made_;
}

EventPool::Answer EventPool::failed(const DeviceError& error) {
  return error.kind == ErrorKind::kCaptureForbidden ? Answer::kInVain : Answer::kNotYet;
}

EventPool::Answer EventPool::ask(const PooledEvent& event) noexcept {
  const Result<bool> reached = device_.queryEvent(event.event());
  if (!reached) return failed(reached.error());
  return reached.value() ? Answer::kReached : Answer::kNotYet;
}

EventPool::Answer EventPool::waitFor(const PooledEvent& event) noexcept {
  const Status waited = device_.synchronizeEvent(event.event());
  return waited ? Answer::kReached : failed(waited.error());
}

EventPool::~EventPool() {
  if (!driverMayBeCalled()) return;
  for (Event event : spare_) (void)device_.destroyEvent(event);
}

}  // namespace cistern
