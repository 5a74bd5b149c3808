// The settings of `cistern replay`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "cistern/options.hpp"
#include "interop/programs/generate.hpp"
#include "interop/trace/read_limits.hpp"

namespace cistern::command {

/// More than any GPU has, so that no trace fails unless a capacity is asked for.
inline constexpr std::uint64_t kDefaultSimCapacity = 192 * kGiB;

enum class Format : std::uint8_t { kTable, kJson, kCsv };

struct ReplaySettings {
  std::vector<std::string> traces;  ///< paths
  trace::ReadLimits read_limits;
  std::optional<std::uint32_t> gpu;       ///< which one of a snapshot's; else all
  std::vector<programs::Recipe> recipes;  ///< programs to make up, after the traces
  std::vector<std::string> policies;      ///< names, all known
  std::string device = "auto";            ///< a backend; after resolveDevice() not "auto"
  std::optional<std::uint64_t> capacity;
  bool fit = false;
  std::uint64_t gpu_lag_us = 0;
  std::uint64_t rounds = 1;
  std::size_t threads = 1;  ///< that the events are dealt over
  Options options;          ///< of the policy "cistern"
  bool check = false;
  Format format = Format::kTable;
  std::vector<std::string> notes;  ///< what was given and has no effect; each is one line
  /// The terminal of the progress line; empty: stderr, if that is one.
  std::string progress;
  std::string plot;  ///< the file that a picture goes to; empty: none is drawn
};

}  // namespace cistern::command
