#include "allocator/base/text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

namespace cistern {
namespace {

template <class Number>
std::optional<Number> readWhole(std::string_view text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return value;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string_view cutAt(std::string_view& text, char separator, bool& found) {
  const auto at = text.find(separator);
  found = at != std::string_view::npos;
  const std::string_view before = text.substr(0, at);
  text = found ? text.substr(at + 1) : std::string_view{};
  return before;
}

std::optional<std::uint64_t> readCount(std::string_view text) {
  return readWhole<std::uint64_t>(text);
}

std::optional<double> readReal(std::string_view text) {
  const auto value = readWhole<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

// Wagner and Fischer's table, one row of it at a time.
std::size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace cistern
