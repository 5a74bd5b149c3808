// The field of a picture: where a number of bytes and a column are in it, and the paths of curves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "interop/command/plot/curve.hpp"

namespace cistern::command {

/// y counts downwards.
struct Field {
  double left, right, top, bottom;
  double most;  ///< bytes, at the top

  double yOf(std::uint64_t bytes) const { return bottom - double(bytes) / most * (bottom - top); }
  /// The x at which the column begins: each is one unit wide.
  double xOf(std::size_t column) const { return left + double(column); }

  /// The area under the curve, up to the most or the least that each column saw.
  std::string area(const Curve& curve, std::uint64_t Curve::Column::*up_to) const;
  /// The curve as a line. In the middle of each column it goes to all that the column saw.
  std::string line(const Curve& curve) const;
};

}  // namespace cistern::command
