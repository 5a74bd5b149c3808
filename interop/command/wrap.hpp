// Text for people, broken into lines.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cistern::command {

/// No line that is printed for people is longer.
inline constexpr std::size_t kPageWidth = 80;

/// `text`, broken between words into lines of at most kPageWidth columns. The first line begins
/// with `first`, each other line with `indent`. A longer word stays whole. Pre: `text` has no line
/// ends. Ends with a line end.
std::string wrapped(std::string_view text, std::string_view indent, std::string_view first);
inline std::string wrapped(std::string_view text, std::string_view indent = "") {
  return wrapped(text, indent, indent);
}

}  // namespace cistern::command
