#include "interop/command/plot/curve.hpp"

#include <algorithm>

namespace cistern::command {

Curve::Curve(std::uint64_t span, std::size_t columns)
    : columns_per_tick_(double(columns) / double(std::max<std::uint64_t>(span, 1))),
      most_columns_(columns) {}

void Curve::add(std::uint64_t when, std::uint64_t value) {
  holdUntil(when);
  Column& now = columns_.back();
  now.least = std::min(now.least, value);
  now.most = std::max(now.most, value);
  now.last = value;
}

void Curve::holdUntil(std::uint64_t when) {
  const auto column = std::size_t(double(when) * columns_per_tick_);
  const std::uint64_t held = columns_.back().last;
  const std::size_t reached = std::min(column + 1, most_columns_);
  if (reached > columns_.size()) columns_.resize(reached, {held, held, held});
}

std::size_t Curve::peakColumn() const {
  const auto lower = [](const Column& a, const Column& b) { return a.most < b.most; };
  return std::size_t(std::max_element(columns_.begin(), columns_.end(), lower) - columns_.begin());
}

}  // namespace cistern::command
