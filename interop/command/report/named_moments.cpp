#include "interop/command/report/named_moments.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "interop/command/console.hpp"

namespace cistern::command {
namespace {

using report::NamedMoment;

std::optional<NamedMoment> momentAt(const recording::Recording& recording, const MomentName& name) {
  const auto& events = recording.events;
  const std::uint64_t time_us = *name.time_us;
  if (events.empty() || time_us > events.back().time_us) return std::nullopt;
  const auto after = std::upper_bound(
      events.begin(), events.end(), time_us,
      [](std::uint64_t time, const recording::Event& event) { return time < event.time_us; });
  return NamedMoment{name.said, std::uint64_t(after - events.begin()), time_us};
}

std::optional<NamedMoment> momentAtMark(const recording::Recording& recording,
                                        const std::string& name) {
  const auto named = [&](const recording::Event& event) {
    return event.kind == recording::EventKind::kMark && recording.marks[event.value] == name;
  };
  const auto at = std::find_if(recording.events.begin(), recording.events.end(), named);
  if (at == recording.events.end()) return std::nullopt;
  return NamedMoment{name, std::uint64_t(at - recording.events.begin()), at->time_us};
}

std::string extentOf(const recording::Recording& recording) {
  const double seconds =
      recording.events.empty() ? 0 : double(recording.events.back().time_us) / 1e6;
  std::string text = fmt::format("{} has {} events", recording.file, recording.events.size());
  text += recording.has_times ? fmt::format(", {:.3f} s", seconds) : ", and no times";
  if (recording.marks.empty()) return text + ", and names no moments";
  return text + fmt::format(", and moments that it names, as '{}'", recording.marks.front());
}

}  // namespace

std::optional<report::NamedMoment> findMoment(const recording::Recording& recording,
                                              const MomentName& name) {
  if (const auto mark = momentAtMark(recording, name.said)) return mark;
  if (name.event && *name.event <= recording.events.size())
    return NamedMoment{"Event " + name.said, *name.event};
  if (name.time_us && recording.has_times) return momentAt(recording, name);
  return std::nullopt;
}

void findMoments(std::vector<report::Subject>& subjects, const std::vector<MomentName>& names) {
  for (const MomentName& name : names) {
    bool found = false;
    for (report::Subject& subject : subjects) {
      if (const auto moment = findMoment(subject.recording, name)) {
        subject.moments.push_back(*moment);
        found = true;
      }
    }
    if (!found) {
      throw UsageError(fmt::format("--at {}: there is no such moment; {}", name.said,
                                   extentOf(subjects.front().recording)));
    }
  }
}

}  // namespace cistern::command
