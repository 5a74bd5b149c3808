// Streams, and work on them.
#include <cstdio>

#include "tests/preload/fake_device/fake_device.hpp"

namespace fake {
namespace {

constexpr Handle kFirst = 0x1000, kMost = Handle{1} << 44;  // of a device
constexpr int kCaptureImplicit = 906;

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

}  // namespace

Handle makeStream(Device& here, bool blocking) {
  const std::lock_guard lock(here.mutex);
  const Handle first = kFirst + (&here == &device(0) ? 0 : kMost);  // no two devices' are alike
  if (blocking) return makeBlocking(here).raw + first;
  const Stream made = here.sim->createStream().orThrow();
  here.nonblocking.insert(made.raw);
  return made.raw + first;
}

int destroyStream(Device& here, Handle stream) {
  const std::lock_guard lock(here.mutex);
  const Stream gone = streamOf(here, stream);
  here.blocking.erase(gone.raw);
  here.nonblocking.erase(gone.raw);
  return codeOf(here.sim->destroyStream(gone));
}

// One default stream a thread and device.
Stream streamOf(Device& here, Handle stream, bool per_thread) {
  const bool own = stream == kPerThread || (stream == 0 && per_thread);
  if (!own) return stream < kFirst ? Stream{} : Stream((stream - kFirst) % kMost);
  static thread_local auto& mine = *new std::map<Device*, Stream>;  // as long as the thread calls
  const std::lock_guard lock(here.mutex);
  auto [it, made] = mine.try_emplace(&here);
  if (made) it->second = makeBlocking(here);
  return it->second;
}

int inOrder(Device& here, Stream stream, int (*call)(void*), void* argument) {
  const std::lock_guard lock(here.mutex);
  if (captured(here, stream)) return call(argument);
  if (stream == Stream{}) {
    if (anyBlockingCaptured(here)) return kCaptureImplicit;
    for (const std::uintptr_t raw : here.blocking) follow(here, stream, Stream(raw));
  }
  const int result = call(argument);
  if (stream == Stream{}) {
    for (const std::uintptr_t raw : here.blocking) follow(here, Stream(raw), stream);
  }
  return result;
}

int isCapturing(Device& here, Handle stream, int* status) {
  const std::lock_guard lock(here.mutex);
  const Stream asked = streamOf(here, stream);
  if (asked == Stream{} && anyBlockingCaptured(here)) return kCaptureImplicit;
  const cistern::Result<cistern::CaptureInfo> info = here.sim->captureInfo(asked);
  if (!info) return codeOf(info);
  return *status = int(info.value().status), 0;
}

int queue(Device& here, Handle stream, bool per_thread, const char* name,
          std::vector<cistern::sim::Access> accesses, std::uint64_t nanoseconds,
          cistern::sim::Effect effect) {
  const Stream on = streamOf(here, stream, per_thread);
  return inOrder(here, on, [&] {
    return codeOf(here.sim->launch(on, {name, accesses, nanoseconds, effect}));
  });
}

unsigned races() {
  unsigned found = 0;
  for (int ordinal = 0; ordinal < kDevices; ++ordinal) {
    for (const cistern::sim::RaceReport& race : device(ordinal).sim->races()) {
      std::fprintf(stderr, "race: %s\n", race.text.c_str());
      ++found;
    }
    device(ordinal).sim->clearRaces();
  }
  return found;
}

}  // namespace fake
