// How reports spell numbers and messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cistern::command {

/// "1,234,567".
inline std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

inline std::string_view firstLine(std::string_view text) { return text.substr(0, text.find('\n')); }

}  // namespace cistern::command
