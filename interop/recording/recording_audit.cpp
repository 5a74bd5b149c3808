// The walk that checks what recording_model.hpp promises; shares no code with what builds a
// recording.
#include <algorithm>

#include "allocator/base/check.hpp"
#include "interop/recording/recording_model.hpp"

namespace cistern::recording {
namespace {

enum class Life : std::uint8_t { kLive, kFreed, kUnused };

// The events that the walk has seen so far.
struct Walk {
  const Recording& recording;
  std::vector<Life> lives;  // by allocation
  std::vector<std::size_t> made_by;
  std::uint64_t time_us = 0;
  std::uint64_t live_bytes = 0;
  bool says_uses = false;
};

void checkTables(const Recording& r) {
  CISTERN_CHECK(!r.stacks.empty() && r.stacks[0].parent == 0);
  CISTERN_CHECK(!r.labels.empty() && r.labels[0].parent == 0 && r.labels[0].name.empty());
  CISTERN_CHECK(!r.pools.empty() && r.pools[0].uuid == 0 && r.pools[0].uid == 0);
  CISTERN_CHECK(!r.streams.empty() && r.streams[0] == 0);
  for (std::size_t i = 1; i < r.stacks.size(); ++i) {
    CISTERN_CHECK(r.stacks[i].parent < i);
    CISTERN_CHECK(r.stacks[i].frame < r.frames.size());
  }
  for (std::size_t i = 1; i < r.labels.size(); ++i) CISTERN_CHECK(r.labels[i].parent < i);
}

bool tellsReserved(const Event& event) {
  return event.kind >= EventKind::kReserve && event.kind <= EventKind::kUnmap;
}

void checkNumbers(const Recording& r, const Event& event) {
  const Place& place = r.placeOf(event);
  CISTERN_CHECK(place.stack < r.stacks.size());
  CISTERN_CHECK(place.label < r.labels.size());
  CISTERN_CHECK(place.pool < r.pools.size());
  CISTERN_CHECK(event.stream < r.streams.size());
  CISTERN_CHECK(event.location == Location::kDevice || tellsReserved(event));
  CISTERN_CHECK(!event.stays_mapped || event.kind == EventKind::kMap ||
                event.kind == EventKind::kUnmap);
  if (event.kind == EventKind::kFailed) {
    CISTERN_CHECK(place.failure < r.failures.size());
    CISTERN_CHECK(event.value == r.failures[place.failure].requested);
  }
  if (event.kind == EventKind::kMark) CISTERN_CHECK(event.value < r.marks.size());
}

void checkEnd(Walk& walk, const Event& event) {
  CISTERN_CHECK(event.value < walk.lives.size());
  const Event& made = walk.recording.events[walk.made_by[event.value]];
  CISTERN_CHECK(walk.recording.placeOf(event) == walk.recording.placeOf(made));
  CISTERN_CHECK(event.stream == made.stream);
  Life& life = walk.lives[event.value];
  if (event.kind == EventKind::kUsesEnd) {
    CISTERN_CHECK(life == Life::kFreed);
    life = Life::kUnused;
    walk.says_uses = true;
    return;
  }
  CISTERN_CHECK(life == Life::kLive);
  life = Life::kFreed;
  walk.live_bytes -= made.value;
}

void checkEvent(Walk& walk, std::size_t number) {
  const Event& event = walk.recording.events[number];
  CISTERN_CHECK(event.time_us >= walk.time_us);
  walk.time_us = event.time_us;
  checkNumbers(walk.recording, event);
  if (event.kind == EventKind::kAllocate) {
    walk.lives.push_back(Life::kLive);
    walk.made_by.push_back(number);
    walk.live_bytes += event.value;
    CISTERN_CHECK(walk.live_bytes <= std::uint64_t{1} << 60);
    if (walk.recording.has_addresses)
      CISTERN_CHECK(event.value == 0 || walk.recording.placeOf(event).address != 0);
  } else if (event.kind == EventKind::kFree || event.kind == EventKind::kUsesEnd) {
    checkEnd(walk, event);
  }
}

}  // namespace

void audit(const Recording& recording) {
  checkTables(recording);
  CISTERN_CHECK(recording.places.empty() || recording.places.size() == recording.events.size());
  Walk walk{recording, {}, {}};
  for (std::size_t i = 0; i < recording.events.size(); ++i) checkEvent(walk, i);
  CISTERN_CHECK(walk.lives.size() == recording.allocations);
  CISTERN_CHECK(!walk.says_uses || recording.stream_uses != StreamUses::kNotSaid);
  CISTERN_CHECK(recording.first_recorded <= recording.events.size());
  CISTERN_CHECK(recording.has_reserved ==
                std::any_of(recording.events.begin(), recording.events.end(), tellsReserved));
}

}  // namespace cistern::recording
