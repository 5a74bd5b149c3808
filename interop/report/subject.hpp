// The subject of a report: a recording, and what its maker found out beside it. The analyses take
// it and never change it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "interop/recording/recording_model.hpp"

namespace cistern::report {

/// The columns of the time line, which the curves of a subject have too.
inline constexpr std::size_t kTimelineColumns = 2000;

/// The memory that another allocator would have reserved for the same program.
struct PolicyCurve {
  std::string name;
  std::vector<std::uint64_t> reserved;  ///< the most in each column, in bytes
  std::uint64_t peak = 0;               ///< bytes
  /// When it did not serve a request; the columns after it are 0.
  std::optional<std::uint64_t> failed_at_us;
  std::string failure;  ///< why it did not, for people; empty if it served all
};

/// A moment that the maker of the report names: the state after `done` events.
struct NamedMoment {
  std::string title;
  std::uint64_t done = 0;                ///< <= the number of events
  std::optional<std::uint64_t> at_us{};  ///< none: the time of the last of them
};

struct Subject {
  recording::Recording recording;
  std::string placed_by;  ///< the policy that placed the blocks in a replay; empty: they have their
                          ///< own addresses
  /// The most reserved in each column, where it is known better than by the recording's events.
  std::vector<std::uint64_t> reserved;
  std::vector<PolicyCurve> policies;
  std::vector<NamedMoment> moments;
  std::optional<std::uint64_t> limit;  ///< bytes, where the maker knows it
};

}  // namespace cistern::report
