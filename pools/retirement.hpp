// The memory of graphs that are gone while replays of them are still queued.
#pragma once

#include <memory>
#include <vector>

#include "allocator/engine/streams/known_streams.hpp"
#include "cistern/device.hpp"

namespace cistern {

class Captured;

/// What a graph holds, and after its reset still does until the device has passed the events.
/// Destroying it lets go at once.
class Retirement {
 public:
  Retirement(Device& device, KnownStreams& known, std::shared_ptr<Captured> held) noexcept
      : device_(device), streams_(known), held_(std::move(held)) {}
  ~Retirement();
  Retirement(const Retirement&) = delete;
  Retirement& operator=(const Retirement&) = delete;

  /// The graph is about to be replayed on the stream. One that is being captured is asked when that
  /// is over, and of one that was forgotten its end is. One that was destroyed without that cannot
  /// be: then the whole device is waited for, by a thread that may wait. All that may fail on the
  /// host comes here: throws std::bad_alloc, changing nothing.
  void addStream(Stream stream);

  // ---- Once the graph was reset

  /// Whether all replays are known to be complete. Waits for nothing.
  bool complete() noexcept;
  /// Waits for them. False when the device says no.
  bool wait() noexcept;
  /// Waits for those that complete() can never tell of.
  void waitForUnknown() noexcept;
  bool unknown() const { return unknown_; }
  bool holds(MempoolId_t pool) const;
  /// The memory stays where it is, whatever becomes of this: the device cannot tell that it is done
  /// with it, and nobody will ask again.
  void keepForGood() noexcept;

 private:
  /// An event behind the replays that were queued on the stream.
  struct Mark {
    Event event;
    Stream stream;
  };
  bool mark(Stream stream) noexcept;
  bool markPresent(Stream stream) noexcept;
  bool passed(Event event) noexcept;
  bool settled(const Mark& mark, const Status& answer) noexcept;
  void forgetEvents() noexcept;

  Device& device_;
  KnownStreams& streams_;
  const std::shared_ptr<Captured> held_;
  std::vector<Stream> unmarked_;  ///< streams that no event was recorded on yet
  // Both with room for one of each stream.
  std::vector<Mark> marks_;
  std::vector<SharedEvent> ends_;
  bool unknown_ = false;  ///< some replay can be waited for with the whole device only
};

}  // namespace cistern
