#include "pools/retirement.hpp"

#include <algorithm>
#include <utility>

#include "allocator/base/process.hpp"
#include "pools/captured.hpp"

namespace cistern {

Retirement::Retirement(Device& device, KnownStreams& known,
                       std::vector<std::shared_ptr<Captured>> held,
                       std::vector<Stream> streams) noexcept
    : device_(&device), streams_(&known), held_(std::move(held)), unmarked_(std::move(streams)) {
  events_.reserve(unmarked_.size());
  ends_.reserve(unmarked_.size());
  if (driverMayBeCalled()) (void)complete();
}

// True when there is nothing more to ask the stream.
bool Retirement::mark(Stream stream) {
  const auto gone = [&](const SharedStreamEnd& end) {
    if (end) ends_.push_back(end);
    return true;
  };
  return streams_->ask(
      stream, [&] { return markPresent(stream); }, gone);
}

// An event behind all that is queued on the stream, unless a capture would record it.
bool Retirement::markPresent(Stream stream) {
  const Result<CaptureInfo> info = device_->captureInfo(stream);
  if (info && info.value().status != CaptureStatus::kNone) return false;
  const Result<Event> event = info ? device_->createEvent() : Result<Event>(info.error());
  const bool recorded = event && device_->recordEvent(event.value(), stream).ok();
  if (recorded) events_.push_back(event.value());
  if (event && !recorded) (void)device_->destroyEvent(event.value());
  unknown_ |= !recorded;
  return true;
}

Retirement::Retirement(Retirement&& other) noexcept
    : device_(other.device_),
      streams_(other.streams_),
      held_(std::move(other.held_)),
      unmarked_(std::move(other.unmarked_)),
      events_(std::exchange(other.events_, {})),
      ends_(std::move(other.ends_)),
      unknown_(other.unknown_) {}

Retirement& Retirement::operator=(Retirement&& other) noexcept {
  forgetEvents();
  device_ = other.device_;
  streams_ = other.streams_;
  held_ = std::move(other.held_);
  unmarked_ = std::move(other.unmarked_);
  events_ = std::exchange(other.events_, {});
  ends_ = std::move(other.ends_);
  unknown_ = other.unknown_;
  return *this;
}

Retirement::~Retirement() { forgetEvents(); }

void Retirement::forgetEvents() noexcept {
  if (!driverMayBeCalled()) return;
  for (const Event event : events_) (void)device_->destroyEvent(event);
  events_.clear();
}

bool Retirement::passed(Event event) {
  const Result<bool> passed = device_->queryEvent(event);
  return passed.ok() && passed.value();
}

bool Retirement::complete() {
  const RelaxedCaptureMode relaxed(*device_);
  std::erase_if(unmarked_, [this](Stream stream) { return mark(stream); });
  if (unknown_ || !unmarked_.empty()) return false;
  while (!events_.empty()) {
    if (!passed(events_.back())) return false;
    (void)device_->destroyEvent(events_.back());
    events_.pop_back();
  }
  std::erase_if(ends_, [this](const SharedStreamEnd& end) { return passed(end->event()); });
  return ends_.empty();
}

bool Retirement::holds(MempoolId_t pool) const {
  return std::any_of(held_.begin(), held_.end(),
                     [&](const auto& captured) { return captured->pool() == pool; });
}

void Retirement::waitForUnknown() {
  const RelaxedCaptureMode relaxed(*device_);
  if (unknown_ && device_->synchronizeDevice()) unknown_ = false;
}

bool Retirement::wait() {
  if (complete()) return true;
  waitForUnknown();
  if (unknown_ || !unmarked_.empty()) return false;
  const RelaxedCaptureMode relaxed(*device_);
  for (const Event event : events_) {
    if (!device_->synchronizeEvent(event)) return false;
  }
  for (const SharedStreamEnd& end : ends_) {
    if (!device_->synchronizeEvent(end->event())) return false;
  }
  return true;
}

}  // namespace cistern
