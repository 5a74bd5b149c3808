// The field of a picture: where a number of bytes and a column are in it, and the paths of curves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

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

// The parts of a written picture: text that may stand in XML, coordinates, and paths of steps.

/// `text`, which is printable, as XML has it in an element or an attribute.
std::string escaped(std::string_view text);

/// A coordinate to a tenth, which is finer than anyone sees.
std::string coordinate(double value);

/// A path of lines across and up. Each is written relative to the one before it, in as few
/// characters as that takes. Coordinates are whole tenths, so errors do not add up.
class StepPath {
 public:
  StepPath(double x, double y);

  void across(double to_x);
  void upTo(double to_y);

  /// The path as it is, or with a straight line back to where it began.
  std::string open() const { return text_ + toEnd(); }
  std::string closed() const { return open() + 'z'; }

 private:
  /// The text that is still to be written to reach x_.
  std::string toEnd() const;

  std::int64_t x_, y_;  ///< in tenths
  std::int64_t written_x_;
  std::string text_;
};

}  // namespace cistern::command
