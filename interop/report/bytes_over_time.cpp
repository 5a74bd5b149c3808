// The bytes over time: asked for, allocated, reserved, and reserved by other policies.
#include "interop/report/analyses.hpp"
#include "interop/report/reserved.hpp"

namespace cistern::report {
namespace {

using nlohmann::json;

std::vector<std::uint64_t> allocatedOf(const Study& study) {
  ColumnMost most(study.columns);
  std::uint64_t taken = 0;
  InUse in_use = study.inUse(Until::kEnded);
  for (std::uint32_t number = 0; number < study.events(); ++number) {
    in_use.apply(
        number, [&](const Life& life) { taken += takenBytes(life.bytes); },
        [&](const Life& life) { taken -= takenBytes(life.bytes); });
    most.add(study.recorded().events[number].time_us, taken);
  }
  return most.finish();
}

json reservedOf(const Study& study) {
  if (!study.subject.reserved.empty()) return study.subject.reserved;
  if (!study.recorded().has_reserved) return nullptr;
  ColumnMost most(study.columns);
  ReservedBytes reserved;
  for (const recording::Event& event : study.recorded().events) {
    reserved.apply(event);
    if (takesMemory(event) || givesMemoryBack(event)) most.add(event.time_us, reserved.bytes());
  }
  return most.finish();
}

json limitOf(const Study& study) {
  if (study.subject.limit) return *study.subject.limit;
  std::uint64_t limit = 0;
  for (const recording::Failure& failure : study.recorded().failures) {
    if (failure.limit != 0) limit = failure.limit;
  }
  return limit == 0 ? json() : json(limit);
}

/// The shortest time in which nine of ten recorded events happen: [from, to].
json busyOf(const Study& study) {
  const auto& events = study.recorded().events;
  const std::size_t first = std::size_t(study.recorded().first_recorded);
  if (events.size() - first < 10) return nullptr;
  const std::size_t reach = (events.size() - first) * 9 / 10;
  std::size_t best = first;
  const auto length = [&](std::size_t from) {
    return events[from + reach - 1].time_us - events[from].time_us;
  };
  for (std::size_t from = first; from + reach <= events.size(); ++from)
    if (length(from) < length(best)) best = from;
  return {events[best].time_us, events[best + reach - 1].time_us};
}

json policiesOf(const Study& study) {
  json policies = json::array();
  for (const PolicyCurve& curve : study.subject.policies) {
    policies.push_back({{"name", curve.name},
                        {"reserved", curve.reserved},
                        {"failed_at", curve.failed_at_us ? json(*curve.failed_at_us) : json()},
                        {"failure", curve.failure},
                        {"peak", curve.peak}});
  }
  return policies;
}

}  // namespace

json timeline(const Study& study) {
  return {{"edges", study.columns.edges()},  {"asked", study.peaks.asked},
          {"allocated", allocatedOf(study)}, {"reserved", reservedOf(study)},
          {"limit", limitOf(study)},         {"stacked", stacked(study)},
          {"policies", policiesOf(study)},   {"busy", busyOf(study)}};
}

}  // namespace cistern::report
