#include "interop/report/moments.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "interop/report/names.hpp"

namespace cistern::report {
namespace {

using recording::EventKind;

constexpr std::size_t kMostFailures = 16;

std::string failureTitle(const Study& study, std::uint32_t number) {
  const recording::Event& event = study.recorded().events[number];
  const std::string where = streamOf(study.recorded(), event.stream);
  return fmt::format("A request of {} on {} failed", formatBytes(event.value), where);
}

std::vector<std::uint32_t> failuresOf(const Study& study) {
  std::vector<std::uint32_t> failures;
  const auto& events = study.recorded().events;
  for (std::uint32_t number = 0; number < events.size(); ++number)
    if (events[number].kind == EventKind::kFailed) failures.push_back(number);
  return failures;
}

void addFailures(const Study& study, std::vector<Moment>& moments,
                 std::vector<std::string>& notes) {
  std::vector<std::uint32_t> failures = failuresOf(study);
  if (const std::size_t all = failures.size(); all > kMostFailures) {
    failures.erase(failures.begin() + kMostFailures / 2, failures.end() - kMostFailures / 2);
    notes.push_back(fmt::format("{} requests failed. The first {} and the last {} are shown.", all,
                                kMostFailures / 2, kMostFailures / 2));
  }
  for (const std::uint32_t number : failures)
    moments.push_back({MomentKind::kFailure, failureTitle(study, number), number, number, true,
                       study.recorded().events[number].time_us});
}

}  // namespace

std::vector<Moment> momentsOf(const Study& study, std::vector<std::string>& notes) {
  std::vector<Moment> moments;
  const std::uint64_t first = study.recorded().first_recorded;
  if (first != 0) {
    moments.push_back(
        {MomentKind::kStart, "The recording begins", std::uint32_t(first), {}, false});
  }
  moments.push_back({MomentKind::kPeak, "The most memory is in use", study.peakDone(), {}, true});
  addFailures(study, moments, notes);
  for (const NamedMoment& named : study.subject.moments)
    moments.push_back(
        {MomentKind::kNamed, named.title, std::uint32_t(named.done), {}, true, named.at_us});
  moments.push_back({MomentKind::kEnd, "The recording ends", study.events(), {}, true});
  std::stable_sort(moments.begin(), moments.end(),
                   [](const Moment& a, const Moment& b) { return a.done < b.done; });
  return moments;
}

}  // namespace cistern::report
