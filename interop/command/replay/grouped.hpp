// How reports spell numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "allocator/base/bytes.hpp"

namespace cistern::command {

/// "1,234,567".
inline std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

/// "1 event", "1,234 events". `thing` is one of them, and takes an s.
inline std::string counted(std::uint64_t number, std::string_view thing) {
  return grouped(number) + ' ' + std::string(thing) + (number == 1 ? "" : "s");
}

/// "1576MiB", as --capacity takes it: rounded up, so that it is enough.
inline std::string capacityText(std::uint64_t bytes) {
  return std::to_string(roundUp(bytes, kMiB) / kMiB) + "MiB";
}

}  // namespace cistern::command
