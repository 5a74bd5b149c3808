// A quantity over time, in as many columns as its picture is wide. It takes no more room than that,
// however often it changes. No peak is lost: a column keeps the least and the most that it saw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cistern::command {

class Curve {
 public:
  struct Column {
    std::uint64_t least, most;
    std::uint64_t last;  ///< what the next column begins with
  };

  /// Covers the time from 0 to `span`. The value is 0 before the first one comes. Pre: columns > 0.
  Curve(std::uint64_t span, std::size_t columns);

  /// The value is `value` from `when` on. Pre: `when` is not before that of the last call.
  void add(std::uint64_t when, std::uint64_t value);
  /// The value stays unchanged until `when` at least. Pre: as of add.
  void holdUntil(std::uint64_t when);

  /// From the first to the last that was reached.
  const std::vector<Column>& columns() const { return columns_; }
  std::uint64_t peak() const { return columns_[peakColumn()].most; }
  /// The first column that saw the peak.
  std::size_t peakColumn() const;

 private:
  double columns_per_tick_;
  std::size_t most_columns_;
  std::vector<Column> columns_{{0, 0, 0}};
};

}  // namespace cistern::command
