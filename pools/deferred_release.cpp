#include "pools/deferred_release.hpp"

#include <algorithm>

#include "allocator/base/process.hpp"
#include "pools/captured.hpp"

namespace cistern {

void DeferredRelease::addStream(Stream stream) {
  if (std::find(unmarked_.begin(), unmarked_.end(), stream) != unmarked_.end()) return;
  const std::size_t count = unmarked_.size() + marks_.size() + 1;
  if (count > unmarked_.capacity()) unmarked_.reserve(2 * count);
  marks_.reserve(unmarked_.capacity());
  ends_.reserve(ends_.size() + unmarked_.capacity());
  unmarked_.push_back(stream);
}

void DeferredRelease::addStreamsTo(std::vector<Stream>& streams) const {
  streams.insert(streams.end(), unmarked_.begin(), unmarked_.end());
  for (const Mark& mark : marks_) streams.push_back(mark.stream);
}

// True when no further call on the stream is needed.
bool DeferredRelease::mark(Stream stream) noexcept {
  const KnownStreams::Look at = streams_.look(stream);
  if (at.end) ends_.push_back(at.end);
  return at.forgotten || markPresent(stream);
}

// An event behind all that is queued on the stream, unless a capture would record it, or has. A
// capture may begin between two calls.
bool DeferredRelease::markPresent(Stream stream) noexcept {
  const Result<CaptureInfo> info = device_.captureInfo(stream);
  if (info && info.value().status != CaptureStatus::kNone) return false;
  const Result<Event> event = info ? device_.createEvent() : Result<Event>(info.error());
  const bool recorded = event && device_.recordEvent(event.value(), stream).ok();
  const Result<CaptureInfo> after = recorded ? device_.captureInfo(stream) : info;
  const bool captured = recorded && (!after || after.value().status != CaptureStatus::kNone);
  if (recorded && !captured) marks_.push_back({event.value(), stream});
  if (event && (!recorded || captured)) (void)device_.destroyEvent(event.value());
  unknown_ |= !recorded;
  return !captured;
}

DeferredRelease::~DeferredRelease() {
  if (!driverMayBeCalled()) return;
  for (const Mark& mark : marks_) (void)device_.destroyEvent(mark.event);
}

// Whether nothing more can be learnt from the mark. An event that a capture has recorded all the
// same marks nothing: its stream gets another. There is room: a stream is unmarked or has one mark.
bool DeferredRelease::settled(const Mark& mark, const Status& answer) noexcept {
  const bool captured = !answer.ok() && answer.error().kind == ErrorKind::kCaptureForbidden;
  if (captured) unmarked_.push_back(mark.stream);
  if (answer.ok() || captured) (void)device_.destroyEvent(mark.event);
  return answer.ok() || captured;
}

bool DeferredRelease::complete() noexcept {
  const RelaxedCaptureMode relaxed(device_);
  std::erase_if(unmarked_, [this](Stream stream) { return mark(stream); });
  if (unknown_ || !unmarked_.empty()) return false;
  while (!marks_.empty()) {
    const Result<bool> passed = device_.queryEvent(marks_.back().event);
    if (passed.ok() && !passed.value()) return false;
    if (!settled(marks_.back(), passed.ok() ? Status() : Status(passed.error()))) return false;
    marks_.pop_back();
  }
  std::erase_if(ends_, [this](const SharedEvent& end) {
    const Result<bool> passed = device_.queryEvent(*end);
    return passed.ok() && passed.value();
  });
  return ends_.empty() && unmarked_.empty();
}

void DeferredRelease::waitForUnknown() noexcept {
  const RelaxedCaptureMode relaxed(device_);
  if (unknown_ && device_.synchronizeDevice()) unknown_ = false;
}

bool DeferredRelease::wait() noexcept {
  if (complete()) return true;
  waitForUnknown();
  if (unknown_ || !unmarked_.empty()) return false;
  const RelaxedCaptureMode relaxed(device_);
  while (!marks_.empty()) {
    if (!settled(marks_.back(), device_.synchronizeEvent(marks_.back().event))) return false;
    marks_.pop_back();
  }
  for (const SharedEvent& end : ends_) {
    if (!device_.synchronizeEvent(*end)) return false;
  }
  return unmarked_.empty();
}

}  // namespace cistern
