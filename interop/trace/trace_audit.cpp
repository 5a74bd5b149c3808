// The walk that checks what trace.hpp promises of a Trace; shares no code with what builds one.
#include <algorithm>

#include "allocator/base/check.hpp"
#include "interop/trace/trace.hpp"

namespace cistern::trace {
namespace {

// The allocations that the walk has seen so far.
struct Seen {
  enum class State : std::uint8_t { kLive, kFreed, kUnused };
  std::vector<std::uint64_t> sizes;
  std::vector<State> states;
  bool says_uses = false;
  std::uint64_t live = 0;
  std::uint64_t peak = 0;
  std::uint64_t duration_us = 0;
};

void see(Seen& seen, const TraceEvent& event) {
  seen.duration_us += event.delta_us;
  if (event.isAllocation()) {
    seen.sizes.push_back(event.value);
    seen.states.push_back(Seen::State::kLive);
    seen.live += event.value;
    seen.peak = std::max(seen.peak, seen.live);
    return;
  }
  CISTERN_CHECK(event.value < seen.sizes.size());
  Seen::State& state = seen.states[event.value];
  if (event.kind == EventKind::kUsesEnd) {
    CISTERN_CHECK(state == Seen::State::kFreed);
    state = Seen::State::kUnused;
    seen.says_uses = true;
    return;
  }
  CISTERN_CHECK(state == Seen::State::kLive);
  state = Seen::State::kFreed;
  seen.live -= seen.sizes[event.value];
}

}  // namespace

void audit(const Trace& trace) {
  Seen seen;
  for (const TraceEvent& event : trace.events) {
    CISTERN_CHECK(event.stream >= 0 && event.stream < trace.streams);
    see(seen, event);
  }
  CISTERN_CHECK(seen.sizes.size() == trace.allocations);
  CISTERN_CHECK(seen.peak == trace.peak_requested_bytes);
  CISTERN_CHECK(seen.peak <= std::uint64_t{1} << 60);
  CISTERN_CHECK(seen.duration_us == trace.duration_us);
  CISTERN_CHECK(!seen.says_uses || trace.stream_uses != StreamUses::kNotSaid);
}

}  // namespace cistern::trace
