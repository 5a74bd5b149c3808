// The memory of graphs that are gone while replays of them are still queued.
#pragma once

#include <memory>
#include <vector>

#include "allocator/device/device.hpp"

namespace cistern {

class Captured;

/// What a graph that was reset still holds, until the device has passed the events. Destroying it
/// lets go at once.
class Retirement {
 public:
  /// The graph's replays, if any, are queued on `streams`. A stream that was destroyed since cannot
  /// be asked: then the whole device is.
  Retirement(Device& device, std::vector<std::shared_ptr<Captured>> held,
             const std::vector<Stream>& streams) noexcept;
  ~Retirement();
  Retirement(Retirement&& other) noexcept;
  Retirement& operator=(Retirement&& other) noexcept;

  /// Whether all replays are known to be complete. Waits for nothing.
  bool complete();
  /// Waits for them. False when the device says no.
  bool wait();
  /// Waits for those that complete() can never tell of.
  void waitForUnknown();
  bool holds(MempoolId_t pool) const;

 private:
  void forgetEvents() noexcept;

  Device* device_;
  std::vector<std::shared_ptr<Captured>> held_;
  std::vector<Event> events_;
  bool unknown_ = false;  ///< some replay can be waited for with the whole device only
};

}  // namespace cistern
