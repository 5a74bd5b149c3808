// Events that were made once and are used again. Own lock, a leaf: no other is taken under it, and
// no device call is made under it.
#pragma once

#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/device/device.hpp"

namespace cistern {

class EventPool {
 public:
  explicit EventPool(Device& device) : device_(device) {}
  /// Destroys the spare ones, if the driver may still be called.
  ~EventPool();
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  /// A spare event, or a new one.
  Result<Event> take() noexcept;
  void give(Event event) noexcept;
  /// How many there are: spare, in use, or being made.
  std::size_t made() const noexcept;

 private:
  Device& device_;
  mutable Mutex mutex_;
  std::vector<Event> spare_ CISTERN_GUARDED_BY(mutex_);  ///< has room for all there are
  std::size_t made_ CISTERN_GUARDED_BY(mutex_) = 0;
};

}  // namespace cistern
