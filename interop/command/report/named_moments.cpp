#include "interop/command/report/named_moments.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "interop/command/console.hpp"

namespace cistern::command {
namespace {

std::optional<std::uint64_t> doneAt(const recording::Recording& recording, std::uint64_t time_us) {
  const auto& events = recording.events;
  if (events.empty() || time_us > events.back().time_us) return std::nullopt;
  const auto after = std::upper_bound(
      events.begin(), events.end(), time_us,
      [](std::uint64_t time, const recording::Event& event) { return time < event.time_us; });
  return std::uint64_t(after - events.begin());
}

std::optional<std::uint64_t> doneAtMark(const recording::Recording& recording,
                                        const std::string& name) {
  const auto named = [&](const recording::Event& event) {
    return event.kind == recording::EventKind::kMark && recording.marks[event.value] == name;
  };
  const auto at = std::find_if(recording.events.begin(), recording.events.end(), named);
  if (at == recording.events.end()) return std::nullopt;
  return std::uint64_t(at - recording.events.begin());
}

std::optional<std::uint64_t> doneAt(const recording::Recording& recording, const MomentName& name) {
  if (const auto mark = doneAtMark(recording, name.said)) return mark;
  if (name.event && *name.event <= recording.events.size()) return name.event;
  if (name.time_us && recording.has_times) return doneAt(recording, *name.time_us);
  return std::nullopt;
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
  const std::optional<std::uint64_t> done = doneAt(recording, name);
  if (!done) return std::nullopt;
  const std::string title = name.event ? "Event " + name.said : name.said;
  return report::NamedMoment{title, *done};
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
