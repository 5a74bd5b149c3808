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
  // Others may have seen the end meanwhile, and its record may have been dropped.
  const auto [it, is_new] = shard.streams.try_emplace(stream.raw);
  if (is_new || it->second.gone) comeBack(stream, it->second);
}

// The end that only the host can wait for, if there is one.
SharedStreamEnd KnownStreams::orderAfterEnd(Stream stream) {
  Shard& shard = shardOf(stream);
  const MutexLock lock(shard.mutex);
  const auto [it, is_new] = shard.streams.try_emplace(stream.raw);
  Known& known = it->second;
  if (is_new && shard.dropped) heaps_.setGone(stream, false);  // its heaps may be those of one gone
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

// One that is forgotten twice has an end behind the first. It may have no record, like one that was
// never met: then it is gone already, with all its work complete, whatever fails from there on.
void KnownStreams::forget(Stream stream) {
  Shard& shard = shardOf(stream);
  const MutexLock lock(shard.mutex);
  if (!shard.dropped && !shard.streams.contains(stream.raw)) return;
  requireUncaptured(stream);
  if (shard.forgotten.size() >= shard.most_forgotten) dropEnded(shard);
  shard.forgotten.reserve(shard.most_forgotten + 1);
  const Event event = events_.take().orThrow();
  SharedStreamEnd end;
  try {
    end = std::make_shared<const StreamEnd>(events_, event);
    (void)shard.streams.try_emplace(stream.raw, Known{.gone = true, .end = nullptr});
  } catch (...) {
    if (end == nullptr) events_.give(event);
    throw;
  }
  Known& known = shard.streams.find(stream.raw)->second;
  if (known.end != nullptr) device_.waitEvent(stream, known.end->event()).orThrow();
  device_.recordEvent(event, stream).orThrow();
  shard.forgotten.push_back(stream.raw);
  known.gone = true;
  known.end = std::move(end);
  heaps_.setGone(stream, true);
}

// Each record pays for a bounded number of looks.
void KnownStreams::dropEnded(Shard& shard) noexcept {
  std::erase_if(shard.forgotten, [&](std::uintptr_t raw) CISTERN_NO_TSA {
    const auto it = shard.streams.find(raw);
    if (it == shard.streams.end() || !it->second.gone) return true;
    dropIfReached(it->second);
    if (it->second.end != nullptr) return false;
    shard.streams.erase(it);
    return shard.dropped = true;
  });
  shard.most_forgotten = 2 * shard.forgotten.size() + kLeastForgotten;
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
