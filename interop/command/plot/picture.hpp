// The picture of one program. An area shows the bytes that it requests over time. For each of
// several allocators, a line shows the bytes that it reserves. The picture does not know where its
// data comes from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "interop/command/plot/curve.hpp"

namespace cistern::command {

/// How many columns the curves of a picture have: a unit of its width each.
inline constexpr std::size_t kPictureColumns = 660;

struct Series {
  std::string key;         ///< one word, that names it in the file
  std::string title;       ///< the first line of its label
  std::string figures;     ///< the second
  std::size_t colour = 0;  ///< a number of style.hpp's; unused by the area
  Curve curve{0, kPictureColumns};
  bool cut_short = false;  ///< it ends where the program was not served any more
};

/// All text is printable.
struct Picture {
  std::string title;
  std::string subtitle;
  std::string description;           ///< for those who cannot see it
  std::string note;                  ///< small, at the bottom
  std::string time;                  ///< what the time axis has so many units of
  std::uint64_t span = 0;            ///< of all curves
  bool in_events = false;            ///< and not in µs
  std::optional<std::uint64_t> cap;  ///< bytes that may be reserved: a line across
  Series asked;
  std::vector<Series> reserved;  ///< the first is drawn over the others
};

/// As SVG, to be read on a white page as on a dark one.
std::string drawn(const Picture& picture);

}  // namespace cistern::command
