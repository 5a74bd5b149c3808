// The simulated device's streams and events. See sim_device.hpp.
#include <algorithm>

#include <fmt/format.h>

#include "allocator/device/sim/costs.hpp"
#include "allocator/device/sim/refusal.hpp"
#include "allocator/device/sim/sim_device.hpp"

namespace cistern::sim {

// ---- Look-up -----------------------------------------------------------------------------------

SimDevice::StreamState* SimDevice::find(Stream stream) {
  const auto it = streams_.find(stream.raw);
  return it == streams_.end() ? nullptr : &it->second;
}

SimDevice::EventState* SimDevice::find(Event event) {
  const auto it = events_.find(event.raw);
  return it == events_.end() ? nullptr : &it->second;
}

Status SimDevice::checkStream(Call call, Stream stream) {
  if (find(stream) != nullptr) return {};
  ++dead_calls_;
  return refusal(call, Reason::kInvalidHandle, fmt::format("stream {} is not alive", stream.raw));
}

Status SimDevice::checkOutsideCapture(Call call, Stream stream) {
  if (Status alive = checkStream(call, stream); !alive.ok()) return alive;
  if (captures_.infoOf(stream).status == CaptureStatus::kNone) return {};
  captures_.invalidate(stream);
  return refusal(call, Reason::kCaptureUnsupported,
                 fmt::format("stream {} is capturing", stream.raw));
}

Status SimDevice::checkEvent(Call call, Event event) {
  if (find(event) != nullptr) return {};
  return refusal(call, Reason::kInvalidHandle, fmt::format("event {} is not alive", event.raw));
}

Status SimDevice::checkObservable(Call call, Event event) {
  if (Status alive = checkEvent(call, event); !alive.ok()) return alive;
  if (!find(event)->captured) return {};
  return refusal(call, Reason::kCapturedEvent,
                 fmt::format("event {} was last recorded in a capture", event.raw));
}

Result<bool> SimDevice::capturing(Call call, Stream stream) {
  switch (captures_.infoOf(stream).status) {
    case CaptureStatus::kNone:
      return false;
    case CaptureStatus::kActive:
      return true;
    case CaptureStatus::kInvalidated:
      break;
  }
  return refusal(call, Reason::kCaptureInvalidated, "an earlier call broke the stream's capture");
}

// ---- Streams -----------------------------------------------------------------------------------

Stream SimDevice::nextStream() {
  if (spare_streams_.empty()) return Stream{next_handle_++};
  const Stream stream = spare_streams_.back();
  spare_streams_.pop_back();
  return stream;
}

Result<Stream> SimDevice::doCreateStream() {
  MutexLock lock(mutex_);
  if (Status in = enter(Call::kCreateStream, cost::kCreateStream); !in.ok()) return in.error();
  const Stream stream = nextStream();
  streams_.emplace(stream.raw, StreamState{0, detector_.openLane()});
  return stream;
}

Status SimDevice::doDestroyStream(Stream stream) {
  MutexLock lock(mutex_);
  if (Status in = enter(Call::kDestroyStream, cost::kDestroyStream); !in.ok()) return in;
  if (Status ok = checkOutsideCapture(Call::kDestroyStream, stream); !ok.ok()) return ok;
  if (stream == Stream{}) {
    return refusal(Call::kDestroyStream, Reason::kInvalidHandle, "the default stream stays");
  }
  detector_.closeLane(find(stream)->lane);
  streams_.erase(stream.raw);
  if (config_.reuse_streams) spare_streams_.push_back(stream);
  return {};
}

Status SimDevice::doWaitEvent(Stream stream, Event event) {
  MutexLock lock(mutex_);
  if (Status in = enter(Call::kWaitEvent, cost::kWaitEvent); !in.ok()) return in;
  if (Status ok = checkStream(Call::kWaitEvent, stream); !ok.ok()) return ok;
  if (Status ok = checkEvent(Call::kWaitEvent, event); !ok.ok()) return ok;
  const auto recording = capturing(Call::kWaitEvent, stream);
  if (!recording.ok()) return recording.error();
  const EventState& marked = *find(event);
  if (marked.captured) return captures_.wait(stream, *marked.captured);
  if (!marked.recorded) return {};
  if (recording.value()) {
    captures_.invalidate(stream);
    return refusal(Call::kWaitEvent, Reason::kCaptureIsolation,
                   "a capture cannot wait for what was queued outside it");
  }
  StreamState& state = *find(stream);
  state.tail = std::max(state.tail, marked.completion);
  detector_.follow(state.lane, marked.moment);
  return {};
}

Result<bool> SimDevice::doQueryStream(Stream stream) {
  MutexLock lock(mutex_);
  if (Status in = enterUnsafe(Call::kQueryStream, cost::kQueryStream); !in.ok()) return in.error();
  if (Status ok = checkOutsideCapture(Call::kQueryStream, stream); !ok.ok()) return ok.error();
  const StreamState& state = *find(stream);
  if (state.tail > clock_.now()) return false;
  detector_.observe(detector_.momentOf(state.lane));
  return true;
}

Status SimDevice::doSynchronizeStream(Stream stream) {
  MutexLock lock(mutex_);
  if (Status in = enterUnsafe(Call::kSynchronizeStream, cost::kSynchronize); !in.ok()) return in;
  if (Status ok = checkOutsideCapture(Call::kSynchronizeStream, stream); !ok.ok()) return ok;
  const StreamState& state = *find(stream);
  Status waited = waitUntil(Call::kSynchronizeStream, state.tail);
  if (waited.ok()) detector_.observe(detector_.momentOf(state.lane));
  return waited;
}

// ---- Events ------------------------------------------------------------------------------------

Result<Event> SimDevice::doCreateEvent() {
  MutexLock lock(mutex_);
  if (Status in = enter(Call::kCreateEvent, cost::kCreateEvent); !in.ok()) return in.error();
  const Event event{next_handle_++};
  events_.emplace(event.raw, EventState{});
  return event;
}

Status SimDevice::doDestroyEvent(Event event) {
  MutexLock lock(mutex_);
  if (Status in = enter(Call::kDestroyEvent, cost::kDestroyEvent); !in.ok()) return in;
  if (Status ok = checkEvent(Call::kDestroyEvent, event); !ok.ok()) return ok;
  events_.erase(event.raw);
  return {};
}

Status SimDevice::doRecordEvent(Event event, Stream stream) {
  MutexLock lock(mutex_);
  if (Status in = enter(Call::kRecordEvent, cost::kRecordEvent); !in.ok()) return in;
  if (Status ok = checkEvent(Call::kRecordEvent, event); !ok.ok()) return ok;
  if (Status ok = checkStream(Call::kRecordEvent, stream); !ok.ok()) return ok;
  const auto recording = capturing(Call::kRecordEvent, stream);
  if (!recording.ok()) return recording.error();
  EventState mark;
  mark.recorded = true;
  if (recording.value()) {
    mark.captured = captures_.pointOf(stream);
  } else {
    StreamState& state = *find(stream);
    mark.completion = enqueue(state, 0);  // the mark is queued like work, and as late
    mark.moment = detector_.momentOf(state.lane);
  }
  *find(event) = std::move(mark);
  return {};
}

Result<bool> SimDevice::doQueryEvent(Event event) {
  MutexLock lock(mutex_);
  if (Status in = enterUnsafe(Call::kQueryEvent, cost::kQueryEvent); !in.ok()) return in.error();
  if (Status ok = checkObservable(Call::kQueryEvent, event); !ok.ok()) return ok.error();
  const EventState& marked = *find(event);
  if (marked.completion > clock_.now()) return false;
  detector_.observe(marked.moment);
  return true;
}

Status SimDevice::doSynchronizeEvent(Event event) {
  MutexLock lock(mutex_);
  if (Status in = enterUnsafe(Call::kSynchronizeEvent, cost::kSynchronize); !in.ok()) return in;
  if (Status ok = checkObservable(Call::kSynchronizeEvent, event); !ok.ok()) return ok;
  const EventState& marked = *find(event);
  Status waited = waitUntil(Call::kSynchronizeEvent, marked.completion);
  if (waited.ok()) detector_.observe(marked.moment);
  return waited;
}

Status SimDevice::doSynchronizeDevice() {
  MutexLock lock(mutex_);
  if (Status in = enterUnsafe(Call::kSynchronizeDevice, cost::kSynchronize); !in.ok()) return in;
  if (captures_.any()) {
    return refusal(Call::kSynchronizeDevice, Reason::kCaptureUnsupported, "a capture is active");
  }
  return waitForAll(Call::kSynchronizeDevice);
}

}  // namespace cistern::sim
