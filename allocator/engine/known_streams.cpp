#include "allocator/engine/known_streams.hpp"

#include <fmt/format.h>

namespace cistern {

void KnownStreams::meet(Stream stream) {
  const SharedStreamEnd end = orderAfterEnd(stream);
  if (end == nullptr) return;
  // A capture cannot wait on the device for what was queued outside it.
  const RelaxedCaptureMode relaxed(device_);
  device_.synchronizeEvent(end->event()).orThrow();
  Shard& shard = shardOf(stream);
  const MutexLock lock(shard.mutex);
  Known& known = shard.streams[stream.raw];
  if (known.end == end) comeBack(stream, known);
}

// The end that only the host can wait for, if there is one.
SharedStreamEnd KnownStreams::orderAfterEnd(Stream stream) {
  Shard& shard = shardOf(stream);
  const MutexLock lock(shard.mutex);
  Known& known = shard.streams[stream.raw];
  if (!known.gone) return nullptr;
  dropIfReached(known);
  if (known.end != nullptr) {
    if (device_.captureInfo(stream).orThrow().status != CaptureStatus::kNone) return known.end;
    device_.waitEvent(stream, known.end->event()).orThrow();
  }
  comeBack(stream, known);
  return nullptr;
}

void KnownStreams::comeBack(Stream stream, Known& known) noexcept {
  known.gone = false;
  known.end = nullptr;
  heaps_.setGone(stream, false);
}

// One that is forgotten twice has an end behind the first.
void KnownStreams::forget(Stream stream) {
  Shard& shard = shardOf(stream);
  const MutexLock lock(shard.mutex);
  const auto it = shard.streams.find(stream.raw);
  if (it == shard.streams.end()) return;
  requireUncaptured(stream);
  Known& known = it->second;
  const Event event = events_.take().orThrow();
  SharedStreamEnd end;
  try {
    end = std::make_shared<const StreamEnd>(events_, event);
  } catch (...) {
    events_.give(event);
    throw;
  }
  if (known.end != nullptr) device_.waitEvent(stream, known.end->event()).orThrow();
  device_.recordEvent(event, stream).orThrow();
  known.gone = true;
  known.end = std::move(end);
  heaps_.setGone(stream, true);
}

void KnownStreams::requireUncaptured(Stream stream) {
  const Result<CaptureInfo> info = device_.captureInfo(stream);
  const bool alive = info.ok() || info.error().kind != ErrorKind::kInvalidHandle;
  if (alive && !info.ok()) throw DeviceFailure(info.error());
  if (alive && info.value().status == CaptureStatus::kNone) return;
  throw InvalidArgument(fmt::format("stream {:#x} of {} device {} cannot be forgotten: it is {}",
                                    stream.raw, device_.backend(), device_.ordinal(),
                                    alive ? "being captured" : "not alive"));
}

void KnownStreams::dropIfReached(Known& known) noexcept {
  if (known.end == nullptr) return;
  const RelaxedCaptureMode relaxed(device_);
  const Result<bool> reached = device_.queryEvent(known.end->event());
  if (reached.ok() && reached.value()) known.end = nullptr;
}

}  // namespace cistern
