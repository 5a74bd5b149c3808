#include "pools/retirement.hpp"

#include <algorithm>

#include "allocator/base/process.hpp"
#include "pools/captured.hpp"

namespace cistern {

void Retirement::addStream(Stream stream) {
  if (std::find(unmarked_.begin(), unmarked_.end(), stream) != unmarked_.end()) return;
  const std::size_t count = unmarked_.size() + 1;
  if (count > unmarked_.capacity()) unmarked_.reserve(2 * count);
  events_.reserve(unmarked_.capacity());
  ends_.reserve(unmarked_.capacity());
  unmarked_.push_back(stream);
}

// True when there is nothing more to ask the stream.
bool Retirement::mark(Stream stream) noexcept {
  const auto gone = [&](const SharedStreamEnd& end) {
    if (end) ends_.push_back(end);
    return true;
  };
  return streams_.ask(
      stream, [&] { return markPresent(stream); }, gone);
}

// An event behind all that is queued on the stream, unless a capture would record it.
bool Retirement::markPresent(Stream stream) noexcept {
  const Result<CaptureInfo> info = device_.captureInfo(stream);
  if (info && info.value().status != CaptureStatus::kNone) return false;
  const Result<Event> event = info ? device_.createEvent() : Result<Event>(info.error());
  const bool recorded = event && device_.recordEvent(event.value(), stream).ok();
  if (recorded) events_.push_back(event.value());
  if (event && !recorded) (void)device_.destroyEvent(event.value());
  unknown_ |= !recorded;
  return true;
}

Retirement::~Retirement() { forgetEvents(); }

void Retirement::forgetEvents() noexcept {
  if (!driverMayBeCalled()) return;
  for (const Event event : events_) (void)device_.destroyEvent(event);
  events_.clear();
}

bool Retirement::passed(Event event) noexcept {
  const Result<bool> passed = device_.queryEvent(event);
  return passed.ok() && passed.value();
}

bool Retirement::complete() noexcept {
  const RelaxedCaptureMode relaxed(device_);
  std::erase_if(unmarked_, [this](Stream stream) { return mark(stream); });
  if (unknown_ || !unmarked_.empty()) return false;
  while (!events_.empty()) {
    if (!passed(events_.back())) return false;
    (void)device_.destroyEvent(events_.back());
    events_.pop_back();
  }
  std::erase_if(ends_, [this](const SharedStreamEnd& end) { return passed(end->event()); });
  return ends_.empty();
}

bool Retirement::holds(MempoolId_t pool) const { return held_->holds(pool); }

void Retirement::waitForUnknown() noexcept {
  const RelaxedCaptureMode relaxed(device_);
  if (unknown_ && device_.synchronizeDevice()) unknown_ = false;
}

bool Retirement::wait() noexcept {
  if (complete()) return true;
  waitForUnknown();
  if (unknown_ || !unmarked_.empty()) return false;
  const RelaxedCaptureMode relaxed(device_);
  for (const Event event : events_) {
    if (!device_.synchronizeEvent(event)) return false;
  }
  for (const SharedStreamEnd& end : ends_) {
    if (!device_.synchronizeEvent(end->event())) return false;
  }
  return true;
}

}  // namespace cistern
