// Streams, events and captures of the fake HIP runtime.
#include <cstdlib>

#include "tests/preload/fake_hip/state.hpp"

using namespace fake;

namespace {

cistern::Event eventOf(hipEvent_t event) { return {reinterpret_cast<std::uintptr_t>(event)}; }
Stream streamOf(hipStream_t stream) { return fake::streamOf(current(), handleOf(stream)); }
hipStream_t orOwn(hipStream_t stream) { return stream == nullptr ? hipStreamPerThread : stream; }

}  // namespace

// ---- Streams ------------------------------------------------------------------------------------

FAKE hipError_t hipStreamCreateWithFlags(hipStream_t* out, unsigned flags) {
  count("hipStreamCreate");
  const bool blocking = flags != hipStreamNonBlocking;
  return *out = reinterpret_cast<hipStream_t>(makeStream(current(), blocking)), hipSuccess;
}
FAKE hipError_t hipStreamCreate(hipStream_t* out) { return hipStreamCreateWithFlags(out, 0); }
FAKE hipError_t hipStreamCreateWithPriority(hipStream_t* out, unsigned flags, int) {
  return hipStreamCreateWithFlags(out, flags);
}
FAKE hipError_t hipExtStreamCreateWithCUMask(hipStream_t* out, uint32_t, const uint32_t*) {
  return hipStreamCreateWithFlags(out, 0);
}
FAKE hipError_t hipStreamDestroy(hipStream_t stream) {
  count("hipStreamDestroy");
  return answer(destroyStream(current(), handleOf(stream)));
}
FAKE hipError_t hipStreamQuery(hipStream_t stream) {
  count("hipStreamQuery");
  return answer(codeOf(current().sim->queryStream(streamOf(stream))));
}
FAKE hipError_t hipStreamSynchronize(hipStream_t stream) {
  count("hipStreamSynchronize");
  return answer(codeOf(current().sim->synchronizeStream(streamOf(stream))));
}
FAKE hipError_t hipStreamSynchronize_spt(hipStream_t stream) {
  return hipStreamSynchronize(orOwn(stream));
}
FAKE hipError_t hipFakeWaitEvent(hipStream_t stream, hipEvent_t event) {
  Device& here = current();
  const Stream waits = streamOf(stream);
  return answer(
      inOrder(here, waits, [&] { return codeOf(here.sim->waitEvent(waits, eventOf(event))); }));
}
FAKE hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned) {
  count("hipStreamWaitEvent");
  static const bool forgets = std::getenv("FAKE_FORGETS_WAITS") != nullptr;
  return forgets ? hipSuccess : hipFakeWaitEvent(stream, event);
}

// ---- Events -------------------------------------------------------------------------------------

FAKE hipError_t hipEventCreateWithFlags(hipEvent_t* out, unsigned) {
  count("hipEventCreate");
  const cistern::Result<cistern::Event> event = current().sim->createEvent();
  if (event) *out = reinterpret_cast<hipEvent_t>(event.value().raw);
  return answer(codeOf(event));
}
FAKE hipError_t hipEventDestroy(hipEvent_t event) {
  count("hipEventDestroy");
  return answer(codeOf(current().sim->destroyEvent(eventOf(event))));
}
FAKE hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  count("hipEventRecord");
  Device& here = current();
  const Stream on = streamOf(stream);
  return answer(
      inOrder(here, on, [&] { return codeOf(here.sim->recordEvent(eventOf(event), on)); }));
}
FAKE hipError_t hipEventQuery(hipEvent_t event) {
  count("hipEventQuery");
  return answer(codeOf(current().sim->queryEvent(eventOf(event))));
}
FAKE hipError_t hipEventSynchronize(hipEvent_t event) {
  count("hipEventSynchronize");
  return answer(codeOf(current().sim->synchronizeEvent(eventOf(event))));
}

// ---- Captures -----------------------------------------------------------------------------------

FAKE hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode) {
  count("hipStreamBeginCapture");
  return answer(codeOf(current().sim->beginCapture(streamOf(stream), cistern::CaptureMode(mode))));
}
FAKE hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t* out) {
  count("hipStreamEndCapture");
  const cistern::Result<cistern::DeviceGraph> graph = current().sim->endCapture(streamOf(stream));
  *out = graph ? reinterpret_cast<hipGraph_t>(graph.value().raw) : nullptr;
  return answer(codeOf(graph));
}
// The header may not declare them.
extern "C" {
hipError_t beginCaptureSpt(hipStream_t, hipStreamCaptureMode) __asm__("hipStreamBeginCapture_spt");
hipError_t endCaptureSpt(hipStream_t, hipGraph_t*) __asm__("hipStreamEndCapture_spt");
}
FAKE hipError_t beginCaptureSpt(hipStream_t stream, hipStreamCaptureMode mode) {
  return hipStreamBeginCapture(orOwn(stream), mode);
}
FAKE hipError_t endCaptureSpt(hipStream_t stream, hipGraph_t* out) {
  return hipStreamEndCapture(orOwn(stream), out);
}
FAKE hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus* status) {
  count("hipStreamIsCapturing");
  int now = 0;
  const int code = isCapturing(current(), handleOf(stream), &now);
  if (code == 0) *status = hipStreamCaptureStatus(now);
  return answer(code);
}
FAKE hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode* mode) {
  count("hipThreadExchangeStreamCaptureMode");
  const cistern::Result<cistern::CaptureMode> before =
      current().sim->exchangeCaptureMode(cistern::CaptureMode(*mode));
  if (before) *mode = hipStreamCaptureMode(before.value());
  return answer(codeOf(before));
}
