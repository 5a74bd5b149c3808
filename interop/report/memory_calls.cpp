// How often memory was taken from the device and given back, and how much; and when that ended.
#include <array>
#include <span>

#include "interop/report/analyses.hpp"
#include "interop/report/reserved.hpp"

namespace cistern::report {
namespace {

using recording::EventKind;

struct CallKind {
  EventKind kind;
  const char* name;
};
constexpr std::array<CallKind, 4> kCalls = {{{EventKind::kReserve, "segment_alloc"},
                                             {EventKind::kRelease, "segment_free"},
                                             {EventKind::kMap, "map"},
                                             {EventKind::kUnmap, "unmap"}}};

}  // namespace

// What was there before the recording began took no call in it.
nlohmann::json calls(const Study& study) {
  std::array<std::uint64_t, kCalls.size()> counts{}, bytes{};
  const std::span events(study.recorded().events);
  for (const recording::Event& event : events.subspan(study.recorded().first_recorded)) {
    if (!isMemoryCall(event)) continue;
    for (std::size_t i = 0; i < kCalls.size(); ++i) {
      if (kCalls[i].kind != event.kind) continue;
      ++counts[i];
      bytes[i] += event.value;
    }
  }
  nlohmann::json rows = nlohmann::json::array();
  for (std::size_t i = 0; i < kCalls.size(); ++i)
    if (counts[i] != 0) rows.push_back({kCalls[i].name, counts[i], bytes[i]});
  return rows;
}

nlohmann::json rest(const Study& study) {
  const recording::Recording& recorded = study.recorded();
  if (!recorded.has_reserved) return nullptr;
  const std::uint32_t first = std::uint32_t(recorded.first_recorded), end = study.events();
  const std::uint32_t half = first + (end - first) / 2, late = end - (end - first) / 10;
  std::uint32_t last = 0, later_calls = 0;  // `last`: the event's number, counted from 1
  for (std::uint32_t i = first; i < end; ++i) {
    if (!isMemoryCall(recorded.events[i])) continue;
    last = i + 1;
    if (i >= half) ++later_calls;
  }
  return {{"last_us", last == 0 ? nlohmann::json() : nlohmann::json(study.timeAfter(last))},
          {"last_event", last == 0 ? nlohmann::json() : nlohmann::json(last - 1)},
          {"later_calls", later_calls},
          {"later_us", study.timeAfter(end) - study.timeAfter(half)},
          {"rested", last <= late}};
}

}  // namespace cistern::report
