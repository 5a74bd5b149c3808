// Streams, events and captures of the fake driver.
#include <cstdlib>

#include "tests/preload/fake_driver/state.hpp"

using namespace fake;

namespace {

cistern::Event eventOf(CUevent event) { return {reinterpret_cast<std::uintptr_t>(event)}; }
Stream streamOf(CUstream stream) { return fake::streamOf(current(), handleOf(stream)); }

}  // namespace

// ---- Streams ------------------------------------------------------------------------------------

FAKE CUresult cuStreamCreate(CUstream* out, unsigned flags) {
  FAKE_BEGIN("cuStreamCreate");
  *out = reinterpret_cast<CUstream>(makeStream(current(), flags != CU_STREAM_NON_BLOCKING));
  return CUDA_SUCCESS;
}
FAKE CUresult cuStreamCreateWithPriority(CUstream* out, unsigned flags, int) {
  return cuStreamCreate(out, flags);
}
FAKE CUresult cuStreamDestroy_v2(CUstream stream) {
  FAKE_BEGIN("cuStreamDestroy");
  return CUresult(destroyStream(current(), handleOf(stream)));
}
FAKE CUresult cuStreamSynchronize_ptsz(CUstream stream) {
  return cuStreamSynchronize(stream == nullptr ? CU_STREAM_PER_THREAD : stream);
}
FAKE CUresult cuStreamQuery(CUstream stream) {
  FAKE_BEGIN("cuStreamQuery");
  return CUresult(codeOf(current().sim->queryStream(streamOf(stream))));
}
FAKE CUresult cuStreamSynchronize(CUstream stream) {
  FAKE_BEGIN("cuStreamSynchronize");
  return CUresult(codeOf(current().sim->synchronizeStream(streamOf(stream))));
}
FAKE CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  FAKE_BEGIN("cuStreamWaitEvent");
  static const bool forgets = std::getenv("FAKE_FORGETS_WAITS") != nullptr;
  return forgets ? CUDA_SUCCESS : cuFakeWaitEvent(stream, event, flags);
}
FAKE CUresult cuFakeWaitEvent(CUstream stream, CUevent event, unsigned) {
  Device& here = current();
  const Stream waits = streamOf(stream);
  return CUresult(
      inOrder(here, waits, [&] { return codeOf(here.sim->waitEvent(waits, eventOf(event))); }));
}

// ---- Events -------------------------------------------------------------------------------------

FAKE CUresult cuEventCreate(CUevent* out, unsigned) {
  FAKE_BEGIN("cuEventCreate");
  const cistern::Result<cistern::Event> event = current().sim->createEvent();
  if (event) *out = reinterpret_cast<CUevent>(event.value().raw);
  return CUresult(codeOf(event));
}
FAKE CUresult cuEventDestroy_v2(CUevent event) {
  FAKE_BEGIN("cuEventDestroy");
  return CUresult(codeOf(current().sim->destroyEvent(eventOf(event))));
}
FAKE CUresult cuEventRecord(CUevent event, CUstream stream) {
  FAKE_BEGIN("cuEventRecord");
  Device& here = current();
  const Stream on = streamOf(stream);
  return CUresult(
      inOrder(here, on, [&] { return codeOf(here.sim->recordEvent(eventOf(event), on)); }));
}
FAKE CUresult cuEventQuery(CUevent event) {
  FAKE_BEGIN("cuEventQuery");
  return CUresult(codeOf(current().sim->queryEvent(eventOf(event))));
}
FAKE CUresult cuEventSynchronize(CUevent event) {
  FAKE_BEGIN("cuEventSynchronize");
  return CUresult(codeOf(current().sim->synchronizeEvent(eventOf(event))));
}

// ---- Captures -----------------------------------------------------------------------------------

FAKE CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  FAKE_BEGIN("cuStreamBeginCapture");
  return CUresult(
      codeOf(current().sim->beginCapture(streamOf(stream), cistern::CaptureMode(mode))));
}
FAKE CUresult cuStreamEndCapture(CUstream stream, CUgraph* out) {
  FAKE_BEGIN("cuStreamEndCapture");
  const cistern::Result<cistern::DeviceGraph> graph = current().sim->endCapture(streamOf(stream));
  *out = graph ? reinterpret_cast<CUgraph>(graph.value().raw) : nullptr;
  return CUresult(codeOf(graph));
}
FAKE CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  FAKE_BEGIN("cuStreamIsCapturing");
  int now = 0;
  const int result = isCapturing(current(), handleOf(stream), &now);
  if (result == 0) *status = CUstreamCaptureStatus(now);
  return CUresult(result);
}
FAKE CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  FAKE_BEGIN("cuThreadExchangeStreamCaptureMode");
  const cistern::Result<cistern::CaptureMode> before =
      current().sim->exchangeCaptureMode(cistern::CaptureMode(*mode));
  if (before) *mode = CUstreamCaptureMode(before.value());
  return CUresult(codeOf(before));
}

// ---- What only a fake has -----------------------------------------------------------------------

FAKE unsigned cuFakeRaces() { return races(); }
FAKE unsigned long long cuFakeCalls(const char* name) { return counted(name); }
FAKE void cuFakeDuring(const char* name, void (*call)()) { callDuring(name, call); }
FAKE unsigned long long cuFakeNow() { return current().sim->now(); }
