// The deferred release of a graph's memory: it goes once the queued replays are complete.
#pragma once

#include <memory>
#include <vector>

#include "allocator/engine/events/known_streams.hpp"
#include "cistern/device.hpp"

namespace cistern {

class Captured;

/// The memory that a graph holds; after its reset, until the device has passed the events. The
/// destructor lets go at once.
class DeferredRelease {
 public:
  DeferredRelease(Device& device, KnownStreams& known, std::shared_ptr<Captured> held) noexcept
      : device_(device), streams_(known), held_(std::move(held)) {}
  ~DeferredRelease();
  DeferredRelease(const DeferredRelease&) = delete;
  DeferredRelease& operator=(const DeferredRelease&) = delete;

  /// The graph is about to be replayed on the stream. A stream that is being captured is queried
  /// when the capture is over. For a forgotten stream its end event is queried. A stream that was
  /// destroyed without forgetStream cannot be queried: a thread that may wait then waits for the
  /// whole device. All that may fail on the host happens here: throws std::bad_alloc, changing
  /// nothing.
  void addStream(Stream stream);
  /// Appends the streams of replays that are not known to be complete.
  void addStreamsTo(std::vector<Stream>& streams) const;

  // ---- Once the graph was reset, or between launches

  /// Whether all replays are known to be complete. Waits for nothing.
  bool complete() noexcept;
  /// Waits for them. False when the device refuses.
  bool wait() noexcept;
  /// Waits for the replays whose end complete() can never see.
  void waitForUnknown() noexcept;
  bool unknown() const { return unknown_; }
  Captured& held() const { return *held_; }

 private:
  /// An event behind the replays that were queued on the stream.
  struct Mark {
    Event event;
    Stream stream;
  };
  bool mark(Stream stream) noexcept;
  bool markPresent(Stream stream) noexcept;
  bool settled(const Mark& mark, const Status& answer) noexcept;

  Device& device_;
  KnownStreams& streams_;                 ///< knows which streams were forgotten
  const std::shared_ptr<Captured> held_;  ///< the memory, and the use of its pool
  std::vector<Stream> unmarked_;          ///< streams that no event was recorded on yet
  // Both with room for one of each stream.
  std::vector<Mark> marks_;        ///< events that may not have passed yet
  std::vector<SharedEvent> ends_;  ///< of forgotten streams: behind their last work
  bool unknown_ = false;           ///< some replay can be waited for with the whole device only
};

}  // namespace cistern
