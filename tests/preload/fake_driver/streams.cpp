// Streams, events, captures and work of the fake driver.
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "tests/preload/fake_driver/state.hpp"

namespace fake {

namespace {

// `later` comes after all that is queued on `earlier`.
void follow(Device& here, Stream later, Stream earlier) {
  const cistern::Event event = here.sim->createEvent().orThrow();
  (void)here.sim->recordEvent(event, earlier);
  (void)here.sim->waitEvent(later, event);
  (void)here.sim->destroyEvent(event);
}

// It comes after what the legacy stream has, like all that synchronise with it.
Stream makeBlocking(Device& here) {
  const Stream made = here.sim->createStream().orThrow();
  here.blocking.insert(made.raw);
  follow(here, made, Stream{});
  return made;
}

}  // namespace

// One default stream a thread and device.
Stream streamOf(Device& here, CUstream stream, bool per_thread) {
  const bool own = stream == CU_STREAM_PER_THREAD || (stream == nullptr && per_thread);
  if (!own) {
    const auto raw = reinterpret_cast<std::uintptr_t>(stream);
    return raw <= 1 ? Stream{} : Stream(raw - 0x1000);
  }
  static thread_local std::map<Device*, Stream> mine;
  const std::lock_guard lock(here.mutex);
  auto [it, made] = mine.try_emplace(&here);
  if (made) it->second = makeBlocking(here);
  return it->second;
}

namespace {

bool captured(Device& here, Stream stream) {
  const cistern::Result<cistern::CaptureInfo> info = here.sim->captureInfo(stream);
  return info.ok() && info.value().status != cistern::CaptureStatus::kNone;
}

bool anyBlockingCaptured(Device& here) {
  for (const std::uintptr_t raw : here.blocking) {
    if (captured(here, Stream(raw))) return true;
  }
  return false;
}

CUstream handleOf(Stream stream) { return reinterpret_cast<CUstream>(stream.raw + 0x1000); }
cistern::Event eventOf(CUevent event) { return {reinterpret_cast<std::uintptr_t>(event)}; }

}  // namespace

CUresult inOrder(Device& here, Stream stream, CUresult (*call)(void*), void* argument) {
  const std::lock_guard lock(here.mutex);
  if (captured(here, stream)) return call(argument);
  if (stream == Stream{}) {
    if (anyBlockingCaptured(here)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    for (const std::uintptr_t raw : here.blocking) follow(here, stream, Stream(raw));
  }
  const CUresult result = call(argument);
  if (stream == Stream{}) {
    for (const std::uintptr_t raw : here.blocking) follow(here, Stream(raw), stream);
  }
  return result;
}

}  // namespace fake

using namespace fake;

// ---- Streams ------------------------------------------------------------------------------------

FAKE CUresult cuStreamCreate(CUstream* out, unsigned flags) {
  FAKE_BEGIN("cuStreamCreate");
  Device& here = current();
  const std::lock_guard lock(here.mutex);
  if (flags != CU_STREAM_NON_BLOCKING) return *out = handleOf(makeBlocking(here)), CUDA_SUCCESS;
  const Stream made = here.sim->createStream().orThrow();
  here.nonblocking.insert(made.raw);
  return *out = handleOf(made), CUDA_SUCCESS;
}
FAKE CUresult cuStreamCreateWithPriority(CUstream* out, unsigned flags, int) {
  return cuStreamCreate(out, flags);
}
FAKE CUresult cuStreamDestroy_v2(CUstream stream) {
  FAKE_BEGIN("cuStreamDestroy");
  Device& here = current();
  const std::lock_guard lock(here.mutex);
  const Stream gone = streamOf(here, stream);
  here.blocking.erase(gone.raw);
  here.nonblocking.erase(gone.raw);
  return codeOf(here.sim->destroyStream(gone));
}
FAKE CUresult cuStreamSynchronize_ptsz(CUstream stream) {
  return cuStreamSynchronize(stream == nullptr ? CU_STREAM_PER_THREAD : stream);
}
FAKE CUresult cuStreamQuery(CUstream stream) {
  FAKE_BEGIN("cuStreamQuery");
  const cistern::Result<bool> done = current().sim->queryStream(streamOf(current(), stream));
  return !done ? codeOf(done) : done.value() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
FAKE CUresult cuStreamSynchronize(CUstream stream) {
  FAKE_BEGIN("cuStreamSynchronize");
  return codeOf(current().sim->synchronizeStream(streamOf(current(), stream)));
}
FAKE CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  FAKE_BEGIN("cuStreamWaitEvent");
  static const bool forgets = std::getenv("FAKE_FORGETS_WAITS") != nullptr;
  return forgets ? CUDA_SUCCESS : cuFakeWaitEvent(stream, event, flags);
}
FAKE CUresult cuFakeWaitEvent(CUstream stream, CUevent event, unsigned) {
  Device& here = current();
  const Stream waits = streamOf(here, stream);
  return inOrder(here, waits, [&] { return codeOf(here.sim->waitEvent(waits, eventOf(event))); });
}

// ---- Events -------------------------------------------------------------------------------------

FAKE CUresult cuEventCreate(CUevent* out, unsigned) {
  FAKE_BEGIN("cuEventCreate");
  const cistern::Result<cistern::Event> event = current().sim->createEvent();
  if (event) *out = reinterpret_cast<CUevent>(event.value().raw);
  return codeOf(event);
}
FAKE CUresult cuEventDestroy_v2(CUevent event) {
  FAKE_BEGIN("cuEventDestroy");
  return codeOf(current().sim->destroyEvent(eventOf(event)));
}
FAKE CUresult cuEventRecord(CUevent event, CUstream stream) {
  FAKE_BEGIN("cuEventRecord");
  Device& here = current();
  const Stream on = streamOf(here, stream);
  return inOrder(here, on, [&] { return codeOf(here.sim->recordEvent(eventOf(event), on)); });
}
FAKE CUresult cuEventQuery(CUevent event) {
  FAKE_BEGIN("cuEventQuery");
  const cistern::Result<bool> done = current().sim->queryEvent(eventOf(event));
  return !done ? codeOf(done) : done.value() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
FAKE CUresult cuEventSynchronize(CUevent event) {
  FAKE_BEGIN("cuEventSynchronize");
  return codeOf(current().sim->synchronizeEvent(eventOf(event)));
}

// ---- Captures -----------------------------------------------------------------------------------

FAKE CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  FAKE_BEGIN("cuStreamBeginCapture");
  return codeOf(
      current().sim->beginCapture(streamOf(current(), stream), cistern::CaptureMode(mode)));
}
FAKE CUresult cuStreamEndCapture(CUstream stream, CUgraph* out) {
  FAKE_BEGIN("cuStreamEndCapture");
  const cistern::Result<cistern::DeviceGraph> graph =
      current().sim->endCapture(streamOf(current(), stream));
  *out = graph ? reinterpret_cast<CUgraph>(graph.value().raw) : nullptr;
  return codeOf(graph);
}
FAKE CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  FAKE_BEGIN("cuStreamIsCapturing");
  Device& here = current();
  const std::lock_guard lock(here.mutex);
  const Stream asked = streamOf(here, stream);
  if (asked == Stream{} && anyBlockingCaptured(here)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  const cistern::Result<cistern::CaptureInfo> info = here.sim->captureInfo(asked);
  if (!info) return codeOf(info);
  static constexpr CUstreamCaptureStatus kStatus[] = {CU_STREAM_CAPTURE_STATUS_NONE,
                                                      CU_STREAM_CAPTURE_STATUS_ACTIVE,
                                                      CU_STREAM_CAPTURE_STATUS_INVALIDATED};
  return *status = kStatus[int(info.value().status)], CUDA_SUCCESS;
}
FAKE CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  FAKE_BEGIN("cuThreadExchangeStreamCaptureMode");
  const cistern::Result<cistern::CaptureMode> before =
      current().sim->exchangeCaptureMode(cistern::CaptureMode(*mode));
  if (before) *mode = CUstreamCaptureMode(before.value());
  return codeOf(before);
}

// ---- What only a fake has -----------------------------------------------------------------------

FAKE unsigned cuFakeRaces() {
  unsigned races = 0;
  for (int ordinal = 0; ordinal < kDevices; ++ordinal) {
    for (const cistern::sim::RaceReport& race : device(ordinal).sim->races()) {
      std::fprintf(stderr, "race: %s\n", race.text.c_str());
      ++races;
    }
    device(ordinal).sim->clearRaces();
  }
  return races;
}
FAKE unsigned long long cuFakeCalls(const char* name) { return counted(name); }
FAKE unsigned long long cuFakeNow() { return current().sim->now(); }
