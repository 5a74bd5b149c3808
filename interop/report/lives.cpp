#include "interop/report/lives.hpp"

#include "allocator/base/bytes.hpp"

namespace cistern::report {
namespace {

constexpr std::uint64_t kGranule = 512;

Life bornAt(const recording::Event& event, const recording::Place& place, std::uint32_t number,
            std::uint32_t events) {
  return {event.value, place.address, number,     events,      events,
          place.stack, place.label,   place.pool, event.stream};
}

}  // namespace

std::vector<Life> livesOf(const recording::Recording& recording) {
  using recording::EventKind;
  std::vector<Life> lives;
  lives.reserve(recording.allocations);
  const auto events = std::uint32_t(recording.events.size());
  for (std::uint32_t number = 0; number < events; ++number) {
    const recording::Event& event = recording.events[number];
    if (event.kind == EventKind::kAllocate)
      lives.push_back(bornAt(event, recording.placeOf(event), number, events));
    if (event.kind == EventKind::kFree)
      lives[event.value].freed = lives[event.value].ended = number;
    if (event.kind == EventKind::kUsesEnd) lives[event.value].ended = number;
  }
  return lives;
}

std::uint64_t takenBytes(std::uint64_t bytes) { return roundUp(bytes, kGranule); }

}  // namespace cistern::report
