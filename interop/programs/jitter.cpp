#include "interop/programs/jitter.hpp"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "interop/programs/program.hpp"

namespace cistern::programs {
namespace {

/// The events of `trace` by number, in their new order.
std::vector<std::size_t> delayed(const trace::Trace& trace, unsigned percent, Random& random) {
  std::vector<std::pair<std::size_t, std::size_t>> order;  // the event that it follows, itself
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const bool late = trace.events[i].kind == trace::EventKind::kFree && random.chance(percent);
    order.emplace_back(late ? i + random.between(1, 4) : i, i);
  }
  // An event comes before the frees that wait for it.
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    const bool a_late = a.first != a.second, b_late = b.first != b.second;
    return std::tuple(a.first, a_late, a.second) < std::tuple(b.first, b_late, b.second);
  });
  std::vector<std::size_t> events;
  for (const auto& [after, event] : order) events.push_back(event);
  return events;
}

}  // namespace

trace::Trace withJitter(const trace::Trace& trace, std::uint64_t percent, std::uint64_t seed) {
  Random random(seed);
  const GeneratorSite site;
  trace::TraceBuilder builder(site);
  std::size_t at = 0;
  for (const std::size_t number : delayed(trace, static_cast<unsigned>(percent), random)) {
    const trace::TraceEvent& event = trace.events[number];
    if (event.isAllocation()) {
      builder.allocate(event.value, std::uint64_t(event.stream));
    } else {
      builder.free(event.value);
    }
    builder.setDelta(trace.events[at++].delta_us);
  }
  builder.rename(trace.name);
  builder.setStreamUses(trace.stream_uses);
  return builder.finish();
}

}  // namespace cistern::programs
