// Streams, events and captures of a context's device. See driver_device.hpp for stream 0.
#include "allocator/device/vendor/error_kind.hpp"
#include "interop/preload/driver/driver_device.hpp"

namespace cistern::preload::GPU_NAMESPACE {
namespace {

StreamHandle handleOf(Stream stream) { return reinterpret_cast<StreamHandle>(stream.raw); }
EventHandle handleOf(Event event) { return reinterpret_cast<EventHandle>(event.raw); }

}  // namespace

Result<bool> DriverDevice::readiness(Call call, Code result) const {
  if (result == kSuccess) return true;
  if (result == kNotReady) return false;
  return failure(call, result);
}

// ---- Streams ------------------------------------------------------------------------------------

Result<bool> DriverDevice::doQueryStream(Stream stream) {
  if (gone_ || (stream == Stream{} && isComplete())) return true;
  return readiness(Call::kQueryStream, onStream(stream, [&](StreamHandle asked) {
                     return driver_.queryStream(asked);
                   }));
}

Status DriverDevice::doSynchronizeStream(Stream stream) {
  if (gone_ || (stream == Stream{} && isComplete())) return {};
  const auto wait = [&](StreamHandle on) { return driver_.synchronizeStream(on); };
  return outcome(Call::kSynchronizeStream, onStream(stream, wait));
}

// The hub is brought up first, so that later queries find stream 0 complete.
Status DriverDevice::doSynchronizeDevice() {
  if (gone_) return {};
  StreamHandle hub = nullptr;
  if (!isComplete()) (void)order_.reach(hub);
  const ContextOrder::Waiting since = order_.waiting();
  const Code result = inContext([&] { return driver_.synchronizeContext(); });
  if (result == kSuccess) order_.waited(since, nullptr);
  return outcome(Call::kSynchronizeDevice, result);
}

// For stream 0 with the hub, which comes after all that was submitted before the last cudaFree.
template <class Call>
Code DriverDevice::onStream(Stream stream, Call call) {
  StreamHandle on = handleOf(stream);
  if (stream == Stream{}) {
    if (const Code result = order_.reach(on); result != kSuccess) return result;
  }
  return inContext([&] { return call(on); });
}

Status DriverDevice::doWaitEvent(Stream stream, Event event) {
  if (gone_) return {};
  if (stream != Stream{}) {
    return outcome(Call::kWaitEvent,
                   inContext([&] { return driver_.waitEvent(handleOf(stream), handleOf(event)); }));
  }
  if (isComplete()) return doSynchronizeEvent(event);
  return outcome(Call::kWaitEvent, order_.allAfter(handleOf(event)));
}

// ---- Events -------------------------------------------------------------------------------------

Result<Event> DriverDevice::doCreateEvent() {
  EventHandle event = nullptr;
  const Code result = inContext([&] { return driver_.createEvent(&event); });
  return outcome(Call::kCreateEvent, result, Event{reinterpret_cast<std::uintptr_t>(event)});
}

Status DriverDevice::doDestroyEvent(Event event) {
  if (gone_) return {};
  return outcome(Call::kDestroyEvent,
                 inContext([&] { return driver_.destroyEvent(handleOf(event)); }));
}

Status DriverDevice::doRecordEvent(Event event, Stream stream) {
  if (gone_ || (stream == Stream{} && isComplete())) return {};
  const auto record = [&](StreamHandle on) { return driver_.recordEvent(handleOf(event), on); };
  return outcome(Call::kRecordEvent, onStream(stream, record));
}

Result<bool> DriverDevice::doQueryEvent(Event event) {
  if (gone_) return true;
  return readiness(Call::kQueryEvent,
                   inContext([&] { return driver_.queryEvent(handleOf(event)); }));
}

Status DriverDevice::doSynchronizeEvent(Event event) {
  if (gone_) return {};
  return outcome(Call::kSynchronizeEvent,
                 inContext([&] { return driver_.synchronizeEvent(handleOf(event)); }));
}

// ---- Captures -----------------------------------------------------------------------------------

// Stream 0 is captured as soon as any stream is: memory freed then is in no order yet. No capture
// has an id that anybody asks for: graphs' memory is the driver's.
Result<CaptureInfo> DriverDevice::doCaptureInfo(Stream stream) {
  if (gone_) return CaptureInfo{};
  CaptureState status = kNoCapture;
  Code result = kSuccess;
  if (stream != Stream{}) {
    result = inContext([&] { return driver_.isCapturing(handleOf(stream), &status); });
    if (result == kCaptureImplicit) {  // the legacy stream, which cannot be itself
      status = kActiveCapture;
      result = kSuccess;
    }
  } else if (captures_.maybe()) {
    const MutexLock lock(captures_.beginning());
    if (order_.capturing()) status = kActiveCapture;
  }
  if (status == kNoCapture) return outcome(Call::kCaptureInfo, result, CaptureInfo{});
  const bool active = status == kActiveCapture;
  return outcome(Call::kCaptureInfo, result,
                 CaptureInfo{active ? CaptureStatus::kActive : CaptureStatus::kInvalidated, 1});
}

Result<CaptureMode> DriverDevice::doExchangeCaptureMode(CaptureMode mode) {
  auto exchanged = int(mode);
  const Code result = driver_.exchangeCaptureMode(&exchanged);
  return outcome(Call::kExchangeCaptureMode, result, CaptureMode(exchanged));
}

}  // namespace cistern::preload::GPU_NAMESPACE
