#include "interop/report/columns.hpp"

#include <algorithm>

namespace cistern::report {

Columns::Columns(const recording::Recording& recording, std::size_t most) {
  if (recording.events.empty()) return;
  start_ = recording.events.front().time_us;
  span_ = recording.events.back().time_us - start_;
  // Not fewer for fewer events: a replay may add some, and its columns have to be the same.
  count_ = std::size_t(std::clamp<std::uint64_t>(span_, 1, most));
}

std::size_t Columns::of(std::uint64_t time_us) const {
  if (span_ == 0) return 0;
  const auto column = std::size_t(double(time_us - start_) / double(span_) * double(count_));
  return std::min(column, count_ - 1);
}

std::vector<std::uint64_t> Columns::edges() const {
  std::vector<std::uint64_t> edges;
  for (std::size_t i = 0; i < count_; ++i) {
    edges.push_back(start_ + std::uint64_t(double(span_) * double(i) / double(count_)));
  }
  edges.push_back(start_ + span_);
  return edges;
}

ColumnPeaks peaksOf(const recording::Recording& recording, InUse in_use, const Columns& columns) {
  ColumnPeaks peaks;
  std::uint64_t asked = 0;
  const auto begin_columns = [&](std::size_t until, std::uint32_t done) {
    peaks.asked.resize(until, asked);
    peaks.done.resize(until, done);
  };
  begin_columns(1, 0);
  for (std::uint32_t number = 0; number < recording.events.size(); ++number) {
    const std::size_t column = columns.of(recording.events[number].time_us);
    if (column >= peaks.asked.size()) begin_columns(column + 1, number);
    in_use.apply(
        number, [&](const Life& life) { asked += life.bytes; },
        [&](const Life& life) { asked -= life.bytes; });
    if (asked <= peaks.asked[column]) continue;
    peaks.asked[column] = asked;
    peaks.done[column] = number + 1;
  }
  begin_columns(columns.count(), std::uint32_t(recording.events.size()));
  return peaks;
}

void ColumnMost::add(std::uint64_t time_us, std::uint64_t value) {
  holdUntil(columns_.of(time_us));
  value_ = value;
  most_[column_] = std::max(most_[column_], value);
}

void ColumnMost::holdUntil(std::size_t column) {
  for (; column_ < column; most_[++column_] = value_) {
  }
}

std::vector<std::uint64_t> ColumnMost::finish() {
  holdUntil(most_.size() - 1);
  return std::move(most_);
}

}  // namespace cistern::report
