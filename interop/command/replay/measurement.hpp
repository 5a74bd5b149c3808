// The results of one trace under one policy when its replay is over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cistern/statistics.hpp"
#include "interop/command/plot/curve.hpp"
#include "interop/command/replay/device_bill.hpp"

namespace cistern::command {

struct Measurement {
  std::string trace;
  std::string file;          ///< the path that it was read from; empty if it is made up
  bool shares_name = false;  ///< another file's trace has the same name
  std::string policy;
  std::string device;                  ///< its backend
  std::uint64_t events = 0;            ///< of one round
  std::optional<std::uint64_t> races;  ///< found by --check, up to where the replay came
  std::string failure;  ///< empty when every request of every round was served, and soundly
  std::uint64_t peak_requested = 0;  ///< of the trace
  bool uses_not_said = false;        ///< it has several streams, and says nothing of their uses
  std::uint64_t peak_reserved = 0;   ///< of the replay, as far as it came
  std::optional<std::uint64_t> fit_bytes;  ///< the least capacity that serves the trace
  double ns_per_event = 0;
  CallCounts calls{};                 ///< on the caller's path
  std::optional<double> modelled_ms;  ///< what these would cost; none on a real device
  std::optional<double> program_ms;   ///< recorded, of all rounds; none if the trace has no times
  std::uint64_t host_bytes_peak = 0;
  CallCounts background_calls{};
  std::optional<double> modelled_background_ms;  ///< what those would cost; none on a real device
  PageCounts pages;
  std::vector<std::uint64_t> calls_by_round;  ///< the caller's and the background's together
  std::optional<Curve> reserved_over_time;    ///< with --plot, as far as the replay came

  /// "run", or "run (b/run.trace)" if only the file tells the traces apart.
  std::string label() const { return shares_name ? trace + " (" + file + ")" : trace; }
  bool ok() const { return failure.empty(); }
  /// Whether any of it was, even if not to the end.
  bool replayed() const { return !calls_by_round.empty(); }
  /// None when the trace was not served: what a part of it reserves says nothing about the whole.
  std::optional<double> efficiency() const {
    if (!ok() || peak_reserved == 0) return std::nullopt;
    return double(peak_requested) / double(peak_reserved);
  }
  std::optional<double> fit() const {
    if (!fit_bytes || *fit_bytes == 0) return std::nullopt;
    return double(peak_requested) / double(*fit_bytes);
  }
  /// What the program waits for calls, as a fraction of its recorded time.
  std::optional<double> shareOfTime() const {
    if (!modelled_ms || !program_ms) return std::nullopt;
    return *modelled_ms / *program_ms;
  }
};

}  // namespace cistern::command
