// Replays a recording under a policy on the simulated device, for a report: the memory that the
// policy reserves over time, and, under policy cistern, where it places each block.
#pragma once

#include <string_view>

#include "interop/command/replay/progress_bar.hpp"
#include "interop/command/replay/script.hpp"
#include "interop/command/report/report_settings.hpp"
#include "interop/report/subject.hpp"

namespace cistern::command {

/// A recording made ready to be replayed.
class ReportReplay {
 public:
  /// Pre: the recording outlives this and keeps its events.
  ReportReplay(const recording::Recording& recording, const ReportSettings& settings);

  /// The curve of a policy, in the columns of a report's time line. A policy that cannot run on the
  /// simulated device, or to which the recording says too little, has a curve without columns whose
  /// failure says why.
  report::PolicyCurve curve(std::string_view policy, const OnProgress& on_progress) const;

  /// The blocks and the memory as policy cistern places them.
  struct Placing {
    std::vector<std::uint64_t> addresses;  ///< of each allocation, by its number; 0 for 0 bytes
    std::vector<recording::Event> memory;  ///< kReserve … kUnmap, in order
    std::vector<recording::Place> places;  ///< theirs
    std::vector<std::uint32_t> before;     ///< for each of them the event that it comes before
    report::PolicyCurve curve;
  };
  /// Incomplete, and its curve's failure says why, if the policy did not serve all.
  Placing place(const OnProgress& on_progress) const;

 private:
  const recording::Recording& recording_;
  const ReportSettings& settings_;
  Script script_;
  std::vector<std::uint32_t> streams_;  ///< the recording's number of each of the script's streams
};

}  // namespace cistern::command
