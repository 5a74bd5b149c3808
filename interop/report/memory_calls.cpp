// How often memory was taken from the device and given back, and how much.
#include <array>

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

nlohmann::json calls(const Study& study) {
  std::array<std::uint64_t, kCalls.size()> counts{}, bytes{};
  for (const recording::Event& event : study.recorded().events) {
    if (!takesMemory(event) && !givesMemoryBack(event)) continue;
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

}  // namespace cistern::report
