// The statistics as names and numbers, for logs, monitors and files. The names are those of
// PyTorch's memory_stats().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "allocator/engine/statistics/statistics.hpp"

namespace cistern {

struct StatRow {
  std::string name;  ///< "allocated_bytes.all.peak"
  std::int64_t value = 0;

  friend bool operator==(const StatRow&, const StatRow&) = default;
};

/// Every number in `stats`. The same names each time, in the same order.
std::vector<StatRow> statRows(const MemoryStats& stats);

/// The rows as one JSON object on one line.
std::string toJson(const std::vector<StatRow>& rows);

}  // namespace cistern
