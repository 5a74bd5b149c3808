// The memory of graphs that are gone while replays of them are still queued.
#pragma once

#include <memory>
#include <vector>

#include "allocator/device/device.hpp"
#include "allocator/engine/known_streams.hpp"

namespace cistern {

class Captured;

/// What a graph that was reset still holds, until the device has passed the events. Destroying it
/// lets go at once.
class Retirement {
 public:
  /// The graph's replays, if any, are queued on `streams`. One that is being captured is asked when
  /// that is over, and of one that was forgotten its end is. One that was destroyed without that
  /// cannot be: then the whole device is waited for, by who may wait.
  Retirement(Device& device, KnownStreams& known, std::vector<std::shared_ptr<Captured>> held,
             std::vector<Stream> streams) noexcept;
  ~Retirement();
  Retirement(Retirement&& other) noexcept;
  Retirement& operator=(Retirement&& other) noexcept;

  /// Whether all replays are known to be complete. Waits for nothing.
  bool complete();
  /// Waits for them. False when the device says no.
  bool wait();
  /// Waits for those that complete() can never tell of.
  void waitForUnknown();
  bool unknown() const { return unknown_; }
  bool holds(MempoolId_t pool) const;

 private:
  bool mark(Stream stream);
  bool markPresent(Stream stream);
  bool passed(Event event);
  void forgetEvents() noexcept;

  Device* device_;
  KnownStreams* streams_;
  std::vector<std::shared_ptr<Captured>> held_;
  std::vector<Stream> unmarked_;  ///< streams that no event was recorded on yet
  std::vector<Event> events_;
  std::vector<SharedStreamEnd> ends_;
  bool unknown_ = false;  ///< some replay can be waited for with the whole device only
};

}  // namespace cistern
