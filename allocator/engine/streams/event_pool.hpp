// Events that were made once and are used again, and what they say. Own lock, a leaf: no other is
// taken under it, and no device call is made under it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "cistern/device.hpp"

namespace cistern {

/// An event, for as long as anybody holds it; then it goes back to its pool, which outlives it.
using SharedEvent = std::shared_ptr<const Event>;

class EventPool {
 public:
  explicit EventPool(Device& device) : device_(device) {}
  /// Destroys the spare ones, if the driver may still be called.
  ~EventPool();

  /// A spare event, or a new one.
  Result<SharedEvent> take() noexcept;
  /// How many there are: spare, in use, or being made.
  std::size_t made() const noexcept {
    const MutexLock lock(mutex_);
    return made_;
  }

  /// What an event says of the work before it: not complete, as far as is known; complete; or
  /// nothing, for good, as a capture has recorded it. Only a capture that began and ended between
  /// two looks at the stream leaves such an event behind.
  enum class Answer : std::uint8_t { kNotYet, kReached, kInVain };
  Answer ask(Event event) noexcept {
    const Result<bool> reached = device_.queryEvent(event);
    if (!reached) return failed(reached.error());
    return reached.value() ? Answer::kReached : Answer::kNotYet;
  }
  /// The same once the host has waited for it; kNotYet where it cannot.
  Answer waitFor(Event event) noexcept {
    const Status waited = device_.synchronizeEvent(event);
    return waited ? Answer::kReached : failed(waited.error());
  }

 private:
  struct Taken {
    explicit Taken(EventPool& from) : pool(from) {}
    ~Taken();
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;

    EventPool& pool;
    Event event;  ///< none, where none could be made
  };
  static Answer failed(const DeviceError& error) {
    return error.kind == ErrorKind::kCaptureForbidden ? Answer::kInVain : Answer::kNotYet;
  }

  Device& device_;
  mutable Mutex mutex_;
  std::vector<Event> spare_ CISTERN_GUARDED_BY(mutex_);  ///< has room for all there are
  std::size_t made_ CISTERN_GUARDED_BY(mutex_) = 0;
};

}  // namespace cistern
