#include "allocator/base/bytes.hpp"

#include <cctype>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "cistern/error.hpp"

namespace cistern {
namespace {

[[noreturn]] void refuse(std::string_view text) {
  throw InvalidArgument(
      fmt::format("'{}' is not a size: give a number, optionally with K, M, G or T", text));
}

[[noreturn]] void refuseLarge(std::string_view text) {
  throw InvalidArgument(fmt::format("'{}' is too large for a size: it must be below 2^63", text));
}

std::string_view withoutSpaces(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// The multiplier that a unit's text names, or 0 when it names none.
double unitOf(std::string_view unit) {
  if (unit.empty() || unit == "B" || unit == "b") return 1.0;
  std::string_view rest = unit.substr(1);
  if (!(rest.empty() || rest == "B" || rest == "b" || rest == "iB" || rest == "ib")) return 0.0;
  switch (std::toupper(static_cast<unsigned char>(unit.front()))) {
    case 'K':
      return double(kKiB);
    case 'M':
      return double(kMiB);
    case 'G':
      return double(kGiB);
    case 'T':
      return double(kTiB);
    default:
      return 0.0;
  }
}

}  // namespace

std::string formatBytes(std::uint64_t bytes) {
  if (bytes < kKiB) return fmt::format("{} B", bytes);
  static constexpr const char* kNames[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = double(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kNames)) value /= 1024, ++unit;
  return fmt::format("{:.2f} {}", value, kNames[unit]);
}

std::uint64_t parseBytes(std::string_view text) {
  const std::string_view body = withoutSpaces(text);
  double value = 0;
  const auto [end, error] = std::from_chars(body.data(), body.data() + body.size(), value);
  if (error == std::errc::result_out_of_range) refuseLarge(text);
  if (error != std::errc{} || !(value >= 0) || std::isinf(value)) refuse(text);
  const std::string_view unit = withoutSpaces(body.substr(std::size_t(end - body.data())));
  const double scale = unitOf(unit);
  if (scale == 0) refuse(text);
  if (value * scale >= 0x1p63) refuseLarge(text);
  return std::uint64_t(value * scale);
}

}  // namespace cistern
