// Byte counts: rounding, and their text form. All units (types.hpp) are powers of 1024.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cistern/types.hpp"

namespace cistern {

// What requests and reports on them go by.
inline constexpr std::uint64_t kLargestHostBlock = kTiB / 2;  ///< no larger one is ever tried
inline constexpr std::uint64_t kPageUnit = 2 * kMiB;          ///< pages are multiples of it

/// `value` rounded up to a multiple of `unit`. Pre: unit > 0 and the result fits.
constexpr std::uint64_t roundUp(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}
/// `value` rounded down to a multiple of `unit`. Pre: unit > 0.
constexpr std::uint64_t roundDown(std::uint64_t value, std::uint64_t unit) {
  return value / unit * unit;
}

/// "512 B", "1.50 MiB", "22.43 GiB": two decimals from KiB up.
std::string formatBytes(std::uint64_t bytes);

/// Reads "4096", "20M", "1.5GiB", "80 GB" (K, M, G, T, each with or without iB or B; all powers of
/// 1024). Throws InvalidArgument naming the text, when it is none of these or is not below 2^63.
std::uint64_t parseBytes(std::string_view text);

}  // namespace cistern
