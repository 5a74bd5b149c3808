#include "allocator/engine/events/known_streams.hpp"

#include <fmt/format.h>

#include "allocator/device/per_thread_stream.hpp"
#include "cistern/error.hpp"

namespace cistern {

void KnownStreams::registerStream(Stream stream) {
  requireOneStream(device_, stream);
  SharedEvent reached;
  while (const SharedEvent end = orderAfterEnd(stream, reached)) {
    // A capture cannot wait on the device for what was queued outside it.
    const RelaxedCaptureMode relaxed(device_);
    device_.synchronizeEvent(*end).orThrow();
    reached = end;
  }
}

// The end that only the host can wait for, if there is one. A stream that is new where records were
// dropped may have the handle, and so the heaps, of a forgotten one.
SharedEvent KnownStreams::orderAfterEnd(Stream stream, const SharedEvent& reached) {
  const MutexLock lock(mutex_);
  Known& known = streams_.try_emplace(stream.raw, Known{dropped_, nullptr, nullptr}).first->second;
  if (!known.forgotten) return nullptr;
  if (known.end == reached || isReached(known.end)) known.end = nullptr;
  if (known.end != nullptr) {
    if (device_.captureInfo(stream).orThrow().status != CaptureStatus::kNone) return known.end;
    device_.waitEvent(stream, *known.end).orThrow();
  }
  known = {};
  told_(stream, false);
  return nullptr;
}

// Whether an event can be recorded behind the last work of the stream.
static void requireForgettable(Device& device, Stream stream) {
  const Result<CaptureInfo> info = device.captureInfo(stream);
  if (!info.ok() && !isGone(info.error())) throw DeviceFailure(info.error());
  if (info.ok() && info.value().status == CaptureStatus::kNone) return;
  throw InvalidArgument(fmt::format("stream {:#x} of {} device {} cannot be forgotten: it is {}",
                                    stream.raw, device.backend(), device.ordinal(),
                                    info.ok() ? "being captured" : "not alive"));
}

// A stream that is forgotten twice has an end behind the first. It may have no record, like one
// that was never met. Then it is forgotten already, with all its work complete, whatever fails from
// there on.
void KnownStreams::forgetStream(Stream stream) {
  if (stream == Stream{}) throw InvalidArgument("the default stream cannot be forgotten: it stays");
  requireOneStream(device_, stream);
  const MutexLock lock(mutex_);
  if (!dropped_ && !streams_.contains(stream.raw)) return;
  requireForgettable(device_, stream);
  if (streams_.size() >= most_records_) dropEnded();
  SharedEvent end = events_.take().orThrow();
  Known& known = streams_.try_emplace(stream.raw, Known{true, nullptr, nullptr}).first->second;
  if (known.end != nullptr) device_.waitEvent(stream, *known.end).orThrow();
  device_.recordEvent(*end, stream).orThrow();
  known = {true, std::move(end), nullptr};
  told_(stream, true);
}

Result<SharedEvent> KnownStreams::eventBehind(Stream stream) noexcept {
  Result<SharedEvent> event = events_.take();
  if (!event) return event;
  const Status recorded = device_.recordEvent(*event.value(), stream);
  if (!recorded) return recorded.error();
  if (!answersNow(stream)) return SharedEvent();
  return event;
}

void KnownStreams::captureBegins(Stream stream) noexcept {
  const MutexLock lock(mutex_);
  const auto known = streams_.find(stream.raw);
  if (known == streams_.end() || known->second.forgotten || !answersNow(stream)) return;
  const Result<SharedEvent> event = eventBehind(stream);
  if (event) known->second.before_capture = event.value();
}

void KnownStreams::captureEnds(Stream stream) noexcept {
  const MutexLock lock(mutex_);
  const auto known = streams_.find(stream.raw);
  if (known != streams_.end()) known->second.before_capture = nullptr;
}

// Each record pays for a bounded number of looks.
void KnownStreams::dropEnded() noexcept {
  const auto dropped = std::erase_if(streams_, [this](const auto& record) {
    return record.second.forgotten && isReached(record.second.end);
  });
  dropped_ |= dropped > 0;
  most_records_ = 2 * streams_.size() + kLeastRecords;
}

bool KnownStreams::isReached(const SharedEvent& end) noexcept {
  if (end == nullptr) return true;
  const RelaxedCaptureMode relaxed(device_);
  return events_.ask(*end) == SpareEvents::Answer::kReached;
}

}  // namespace cistern
