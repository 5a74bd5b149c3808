// A subject with what every analysis needs of it, worked out once.
#pragma once

#include <cstdint>
#include <vector>

#include "interop/report/columns.hpp"
#include "interop/report/in_use.hpp"
#include "interop/report/lives.hpp"
#include "interop/report/subject.hpp"

namespace cistern::report {

struct Study {
  /// Throws InvalidArgument if the recording has more than kMostEvents events. Pre: the subject
  /// outlives the study, and its recording keeps its invariants.
  explicit Study(const Subject& about);

  const recording::Recording& recorded() const { return subject.recording; }
  std::uint32_t events() const { return std::uint32_t(recorded().events.size()); }
  /// The time at which the first `done` events have happened, in µs.
  std::uint64_t timeAfter(std::uint64_t done) const;
  /// The first moment at which the program asks for most: so many events have happened then.
  std::uint32_t peakDone() const;

  InUse inUse(Until until = Until::kFreed) const { return {recorded(), lives, sleeps, until}; }

  const Subject& subject;
  const std::vector<Life> lives;
  /// When blocks fall asleep and wake. Recordings of Cistern's own alone tell of all memory, and so
  /// of its absence. A block that a replay has placed never sleeps.
  const std::vector<recording::BackingChange> sleeps;
  const Columns columns;
  const ColumnPeaks peaks;
};

}  // namespace cistern::report
