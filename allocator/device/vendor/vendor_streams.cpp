// Streams, events, and waiting for them.
#include "allocator/device/vendor/vendor_device.hpp"

namespace cistern::GPU_NAMESPACE {
namespace {

/// "Not ready" is an answer. The runtime keeps it as the thread's last error all the same.
Result<bool> readiness(Call call, Error error) {
  if (error == kSuccess) return true;
  if (error != GPU(ErrorNotReady)) return failure(call, error);
  forget(error);
  return false;
}

}  // namespace

// Non-blocking: the legacy default stream is the user's, and must not wait for ours.
Result<Stream> VendorDevice::doCreateStream() {
  StreamHandle stream = nullptr;
  const Error error =
      onDevice([&] { return GPU(StreamCreateWithFlags)(&stream, GPU(StreamNonBlocking)); });
  return outcome(Call::kCreateStream, error, Stream{rawOf(stream)});
}

Status VendorDevice::doDestroyStream(Stream stream) {
  return outcome(Call::kDestroyStream,
                 onDevice([&] { return GPU(StreamDestroy)(handleOf(stream)); }));
}

Status VendorDevice::doWaitEvent(Stream stream, Event event) {
  return outcome(Call::kWaitEvent, onDevice([&] {
                   return GPU(StreamWaitEvent)(handleOf(stream), handleOf(event), 0);
                 }));
}

Result<bool> VendorDevice::doQueryStream(Stream stream) {
  return readiness(Call::kQueryStream,
                   onDevice([&] { return GPU(StreamQuery)(handleOf(stream)); }));
}

Status VendorDevice::doSynchronizeStream(Stream stream) {
  return outcome(Call::kSynchronizeStream,
                 onDevice([&] { return GPU(StreamSynchronize)(handleOf(stream)); }));
}

Result<Event> VendorDevice::doCreateEvent() {
  EventHandle event = nullptr;
  const Error error =
      onDevice([&] { return GPU(EventCreateWithFlags)(&event, GPU(EventDisableTiming)); });
  return outcome(Call::kCreateEvent, error, Event{rawOf(event)});
}

Status VendorDevice::doDestroyEvent(Event event) {
  return outcome(Call::kDestroyEvent, onDevice([&] { return GPU(EventDestroy)(handleOf(event)); }));
}

Status VendorDevice::doRecordEvent(Event event, Stream stream) {
  return outcome(Call::kRecordEvent,
                 onDevice([&] { return GPU(EventRecord)(handleOf(event), handleOf(stream)); }));
}

Result<bool> VendorDevice::doQueryEvent(Event event) {
  return readiness(Call::kQueryEvent, onDevice([&] { return GPU(EventQuery)(handleOf(event)); }));
}

Status VendorDevice::doSynchronizeEvent(Event event) {
  return outcome(Call::kSynchronizeEvent,
                 onDevice([&] { return GPU(EventSynchronize)(handleOf(event)); }));
}

Status VendorDevice::doSynchronizeDevice() {
  return outcome(Call::kSynchronizeDevice, onDevice([] { return GPU(DeviceSynchronize)(); }));
}

}  // namespace cistern::GPU_NAMESPACE
