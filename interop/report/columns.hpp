// The time of a recording in even columns, as wide as a picture needs; and the moment within each
// column at which the program asked for most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "interop/recording/recording_model.hpp"
#include "interop/report/in_use.hpp"

namespace cistern::report {

/// Columns cover the time from the first event to the last. In a recording without times, which
/// counts events instead, they cover its events.
class Columns {
 public:
  /// At most `most` columns, at least one. Pre: most > 0.
  Columns(const recording::Recording& recording, std::size_t most);

  std::size_t count() const { return count_; }
  /// The column of that time; the last one for all that comes later. Pre: not before the first
  /// event.
  std::size_t of(std::uint64_t time_us) const;
  /// The beginnings of the columns, and the end of the last one: count() + 1 times in µs.
  std::vector<std::uint64_t> edges() const;

 private:
  std::uint64_t start_ = 0;
  std::uint64_t span_ = 0;
  std::size_t count_ = 1;
};

/// For each column the most bytes of blocks in use within it, and how many events had happened
/// then. A column without events has the state that it begins with.
struct ColumnPeaks {
  std::vector<std::uint64_t> asked;
  std::vector<std::uint32_t> done;  ///< never falls from one column to the next
};
ColumnPeaks peaksOf(const recording::Recording& recording, InUse in_use, const Columns& columns);

/// The most of a value in each column, as the value changes over time.
class ColumnMost {
 public:
  explicit ColumnMost(const Columns& columns) : columns_(columns), most_(columns.count()) {}

  /// The value is `value` from `time_us` on. Pre: times never fall.
  void add(std::uint64_t time_us, std::uint64_t value);
  /// For each column; the last value lasts to the end.
  std::vector<std::uint64_t> finish();

 private:
  void holdUntil(std::size_t column);

  const Columns& columns_;
  std::vector<std::uint64_t> most_;
  std::size_t column_ = 0;
  std::uint64_t value_ = 0;
};

}  // namespace cistern::report
