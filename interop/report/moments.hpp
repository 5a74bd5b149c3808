// The moments that a report tells in full: the peak, failed requests, those that its maker names,
// the start and the end. Read next: windows.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "interop/report/study.hpp"

namespace cistern::report {

enum class MomentKind : std::uint8_t { kStart, kPeak, kFailure, kNamed, kEnd };

struct Moment {
  MomentKind kind = MomentKind::kPeak;
  std::string title;
  std::uint32_t done = 0;  ///< the state after so many events; of a failure, before its event
  std::optional<std::uint32_t> failure;  ///< the event of the failed request
  bool has_window = false;               ///< its memory is shown exactly
  std::optional<std::uint64_t> at_us{};  ///< none: the time of the last event before it
};

/// In order of time. If very many requests failed, only the first and the last of them are moments;
/// a sentence about that goes to `notes`.
std::vector<Moment> momentsOf(const Study& study, std::vector<std::string>& notes);

/// One moment as JSON, without its window. `leaks`: what the analysis of that name has found.
nlohmann::json momentJson(const Study& study, const Moment& moment, const nlohmann::json& leaks);

}  // namespace cistern::report
