#include "allocator/engine/streams/event_pool.hpp"

#include <new>
#include <utility>

#include "allocator/base/process.hpp"

namespace cistern {

// Taking it back never fails, so where it goes is made before the event.
Result<SharedEvent> EventPool::take() noexcept try {
  Slot& slot = takeSlot();
  const SharedEvent taken(&slot.event, [this, &slot](const Event*) { giveBack(slot); });
  if (slot.event == Event{}) {
    const Result<Event> fresh = device_.createEvent();
    if (!fresh) return fresh.error();
    slot.event = fresh.value();
  }
  return taken;
} catch (const std::bad_alloc&) {
  return DeviceError{Call::kCreateEvent, ErrorKind::kOther, 0, "no host memory", {}};
}

EventPool::Slot& EventPool::takeSlot() {
  const MutexLock lock(mutex_);
  if (spare_ == nullptr) return slots_.emplace_back();
  return *std::exchange(spare_, spare_->next_spare);
}

void EventPool::giveBack(Slot& slot) noexcept {
  const MutexLock lock(mutex_);
  slot.next_spare = std::exchange(spare_, &slot);
}

EventPool::~EventPool() {
  if (!driverMayBeCalled()) return;
  for (const Slot& slot : slots_) {
    if (slot.event != Event{}) (void)device_.destroyEvent(slot.event);
  }
}

}  // namespace cistern
