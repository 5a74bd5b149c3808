#include "pools/retirement.hpp"

#include <algorithm>
#include <utility>

#include "allocator/base/process.hpp"
#include "pools/captured.hpp"

namespace cistern {
namespace {

// An event behind all that is queued on the stream; none when that cannot be had, or when a
// capture would record it.
Result<Event> eventBehind(Device& device, Stream stream) {
  const Result<CaptureInfo> info = device.captureInfo(stream);
  if (!info) return info.error();
  if (info.value().status != CaptureStatus::kNone) {
    return DeviceError{Call::kRecordEvent, ErrorKind::kCaptureForbidden, 0, "", "being captured"};
  }
  Result<Event> event = device.createEvent();
  if (!event) return event;
  if (const Status recorded = device.recordEvent(event.value(), stream); !recorded) {
    (void)device.destroyEvent(event.value());
    return recorded.error();
  }
  return event;
}

}  // namespace

Retirement::Retirement(Device& device, std::vector<std::shared_ptr<Captured>> held,
                       const std::vector<Stream>& streams) noexcept
    : device_(&device), held_(std::move(held)) {
  if (!driverMayBeCalled()) return;
  for (const Stream stream : streams) {
    const Result<Event> event = eventBehind(device, stream);
    if (event) {
      events_.push_back(event.value());
    } else {
      unknown_ = true;
    }
  }
}

Retirement::Retirement(Retirement&& other) noexcept
    : device_(other.device_),
      held_(std::move(other.held_)),
      events_(std::exchange(other.events_, {})),
      unknown_(other.unknown_) {}

Retirement& Retirement::operator=(Retirement&& other) noexcept {
  forgetEvents();
  device_ = other.device_;
  held_ = std::move(other.held_);
  events_ = std::exchange(other.events_, {});
  unknown_ = other.unknown_;
  return *this;
}

Retirement::~Retirement() { forgetEvents(); }

void Retirement::forgetEvents() noexcept {
  if (!driverMayBeCalled()) return;
  for (const Event event : events_) (void)device_->destroyEvent(event);
  events_.clear();
}

bool Retirement::complete() {
  if (unknown_) return false;
  const RelaxedCaptureMode relaxed(*device_);
  while (!events_.empty()) {
    const Result<bool> passed = device_->queryEvent(events_.back());
    if (!passed || !passed.value()) return false;
    (void)device_->destroyEvent(events_.back());
    events_.pop_back();
  }
  return true;
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
  waitForUnknown();
  if (unknown_) return false;
  const RelaxedCaptureMode relaxed(*device_);
  for (const Event event : events_) {
    if (!device_->synchronizeEvent(event)) return false;
  }
  return true;
}

}  // namespace cistern
