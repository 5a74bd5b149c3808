// Events that were made once and are used again, and what they say. No device call is made under a
// lock.
#pragma once

#include <cstdint>
#include <memory>
#include <new>

#include "allocator/base/process.hpp"
#include "allocator/base/recycled.hpp"
#include "cistern/device.hpp"

namespace cistern {

/// An event, for as long as anybody holds it; then it is spare again; SpareEvents outlives it.
using SharedEvent = std::shared_ptr<const Event>;

class SpareEvents {
 public:
  explicit SpareEvents(Device& device) : device_(device) {}
  /// Destroys them, if the driver may still be called. Pre: nobody holds one.
  ~SpareEvents() {
    if (!driverMayBeCalled()) return;
    slots_.forEach([this](const Slot& slot) {
      if (slot.event != Event{}) (void)device_.destroyEvent(slot.event);
    });
  }

  /// A spare event, or a new one. Taking it back never fails: so where it goes is made first.
  Result<SharedEvent> take() noexcept try {
    Slot& slot = slots_.take();
    const SharedEvent taken(&slot.event, [this, &slot](const Event*) { slots_.recycle(slot); });
    if (slot.event == Event{}) {
      const Result<Event> fresh = device_.createEvent();
      if (!fresh) return fresh.error();
      slot.event = fresh.value();
    }
    return taken;
  } catch (const std::bad_alloc&) {
    return DeviceError{Call::kCreateEvent, ErrorKind::kOther, 0, "no host memory", {}};
  }

  /// An event's answer about the work before it: not complete, as far as is known; complete; or
  /// never any, as a capture has recorded it. Only a capture that began and ended between two looks
  /// at the stream leaves such an event behind.
  enum class Answer : std::uint8_t { kNotYet, kReached, kInVain };
  Answer ask(Event event) noexcept {
    const Result<bool> reached = device_.queryEvent(event);
    if (!reached) return failed(reached.error());
    return reached.value() ? Answer::kReached : Answer::kNotYet;
  }
  /// The event's answer once the host has waited for it; kNotYet where the host cannot wait.
  Answer waitFor(Event event) noexcept {
    const Status waited = device_.synchronizeEvent(event);
    return waited ? Answer::kReached : failed(waited.error());
  }

 private:
  struct Slot {
    Event event;  ///< none, where none could be made yet
    Slot* next = nullptr;
  };
  static Answer failed(const DeviceError& error) {
    return error.kind == ErrorKind::kCaptureForbidden ? Answer::kInVain : Answer::kNotYet;
  }

  Device& device_;
  Recycled<Slot> slots_;
};

}  // namespace cistern
