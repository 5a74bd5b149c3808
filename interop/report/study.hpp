// A subject with what every analysis needs of it, worked out once.
#pragma once

#include <cstdint>
#include <vector>

#include "interop/report/columns.hpp"
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

  const Subject& subject;
  const std::vector<Life> lives;
  const Columns columns;
  const ColumnPeaks peaks;
};

}  // namespace cistern::report
