#include "interop/report/study.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "cistern/error.hpp"

namespace cistern::report {
namespace {

const Subject& checked(const Subject& subject) {
  if (subject.recording.events.size() <= kMostEvents) return subject;
  throw InvalidArgument(fmt::format("{} has {} events, and a report takes {} at most",
                                    subject.recording.file, subject.recording.events.size(),
                                    kMostEvents));
}

std::vector<recording::BackingChange> sleepsOf(const Subject& subject) {
  using recording::Source;
  const Source source = subject.recording.source;
  const bool is_own = source != Source::kPytorch && source != Source::kRmm;
  if (!is_own || !subject.placed_by.empty()) return {};
  return backingChanges(subject.recording, recording::Backing::kAny);
}

}  // namespace

Study::Study(const Subject& about)
    : subject(checked(about)),
      lives(livesOf(subject.recording)),
      sleeps(sleepsOf(subject)),
      columns(subject.recording, kTimelineColumns),
      peaks(peaksOf(subject.recording, inUse(), columns)) {}

std::uint64_t Study::timeAfter(std::uint64_t done) const {
  const auto& events = recorded().events;
  if (events.empty()) return 0;
  return events[done == 0 ? 0 : done - 1].time_us;
}

std::uint32_t Study::peakDone() const {
  const auto most = std::max_element(peaks.asked.begin(), peaks.asked.end());
  return peaks.done[std::size_t(most - peaks.asked.begin())];
}

}  // namespace cistern::report
