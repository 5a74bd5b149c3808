// The streams that the program has named, and the ends of those that it was about to destroy.
//
// No call may ask about a destroyed stream, not even whether it was destroyed: on CUDA such a call
// may end the process. So a program announces the end of a stream while the stream still exists,
// and an event is recorded behind its last work. From then on the device is not called with that
// handle; the event tells how far the stream has come. Drivers give a free handle to a stream made
// later. As soon as a verb names that stream, it is ordered after the end of the one before it.
// From there on the two are one stream that had a pause.
//
//   unknown --register--> present --forget--> forgotten --register--> present
//
// The record of a forgotten stream is dropped some time after its end was reached. So if a stream
// has been met and has no record, all its work is complete.
//
// Streams are asked, and forgotten, under the lock here; so none is forgotten while it is asked.
#pragma once

#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "allocator/base/bounds.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/engine/events/spare_events.hpp"
#include "cistern/device.hpp"

namespace cistern {

/// The handle names no stream of the device: it was destroyed.
inline bool isGone(const DeviceError& error) noexcept {
  return error.kind == ErrorKind::kInvalidHandle;
}

/// Thread-safe.
class KnownStreams {
 public:
  /// Called under the lock here when a stream is forgotten, or present again. It must not throw.
  using Told = std::function<void(Stream, bool forgotten)>;
  KnownStreams(Device& device, SpareEvents& events, Told told)
      : device_(device), events_(events), told_(std::move(told)) {}

  /// A verb names the stream. If one with that handle was forgotten, this is another. Work that is
  /// queued on it from now on comes after the end of the first. The host waits for that end only if
  /// the stream is being captured. No device call for a stream that is present or unknown. Pre: the
  /// stream is alive. Throws DeviceFailure, std::bad_alloc, changing nothing.
  void registerStream(Stream stream);
  /// The program is about to destroy the stream. No-op for a stream without a record. But if any
  /// record was ever dropped, the stream may have been met before, and gets an end. Pre: the stream
  /// is alive, and no verb names it meanwhile. Throws InvalidArgument for the default stream and
  /// for one that is being captured or not alive, DeviceFailure, std::bad_alloc, changing nothing.
  void forgetStream(Stream stream);

  /// A look at one stream. While this lives, the stream does not change between present and
  /// forgotten. Meanwhile the thread must not look at another stream. The analysis does not follow
  /// the lock.
  struct Look {
    Look(KnownStreams& all, Stream stream) noexcept CISTERN_NO_TSA : still(all.mutex_) {
      const auto it = all.streams_.find(stream.raw);
      if (it == all.streams_.end()) return;
      forgotten = it->second.forgotten;
      if (forgotten && all.isReached(it->second.end)) it->second.end = nullptr;
      end = it->second.end;
      before_capture = it->second.before_capture;
    }
    const MutexLock still;
    bool forgotten = true;
    SharedEvent end{};  ///< behind the last work of a forgotten one; null once all its work is
                        ///< known to be complete
    SharedEvent before_capture{};  ///< behind the work from before the capture that it began
  };
  /// Pre: the stream was met.
  Look look(Stream stream) noexcept { return {*this, stream}; }

  /// The streams that may have work queued. Throws std::bad_alloc.
  std::vector<Stream> all() {
    const MutexLock lock(mutex_);
    std::vector<Stream> streams;
    streams.reserve(streams_.size());
    for (const auto& [raw, known] : streams_) {
      if (!known.forgotten || known.end != nullptr) streams.push_back(Stream{raw});
    }
    return streams;
  }
  /// How many have a record.
  std::size_t count() const {
    const MutexLock lock(mutex_);
    return streams_.size();
  }
  /// A capture is about to begin on the stream. Until captureEnds the stream cannot be asked; an
  /// event from before the capture stands for all that it had queued. A stream already being
  /// captured gets no event. It gives no answer until the capture ends.
  void captureBegins(Stream stream) noexcept;
  /// The capture on the stream is over.
  void captureEnds(Stream stream) noexcept;

  /// Whether the stream can be asked how far it is: it is alive, and no capture records it, which
  /// asking would break. One that cannot be asked now may be asked later. Pre: the stream stays
  /// meanwhile.
  bool answersNow(Stream stream) noexcept {
    const Result<CaptureInfo> info = device_.captureInfo(stream);
    return info.ok() && info.value().status == CaptureStatus::kNone;
  }
  /// An event behind all that the stream has queued; null if a capture may have taken it. Pre: the
  /// stream stays meanwhile, and answered just now. A capture may have begun since; then asking the
  /// event would break it.
  Result<SharedEvent> eventBehind(Stream stream) noexcept;

 private:
  struct Known {
    bool forgotten = false;
    SharedEvent end;  ///< null while it is present, and once it is known to be complete
    SharedEvent before_capture{};  ///< while a capture that it began is under way
  };
  bool isReached(const SharedEvent& end) noexcept;
  void dropEnded() noexcept CISTERN_REQUIRES(mutex_);
  SharedEvent orderAfterEnd(Stream stream, const SharedEvent& reached);

  Device& device_;
  SpareEvents& events_;
  const Told told_;
  mutable Mutex mutex_{LockRank::kKnownStreams};
  std::unordered_map<std::uintptr_t, Known> streams_ CISTERN_GUARDED_BY(mutex_);
  /// At this many records, those that can go are dropped. The threshold becomes twice what is left,
  /// plus kLeastRecords.
  std::size_t most_records_ CISTERN_GUARDED_BY(mutex_) = kLeastRecords;
  bool dropped_ CISTERN_GUARDED_BY(mutex_) = false;  ///< a record was
  static constexpr std::size_t kLeastRecords = bound(64);
};

}  // namespace cistern
