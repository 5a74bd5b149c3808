// The parts of a written picture: text that may stand in XML, coordinates, and paths of steps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cistern::command {

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
