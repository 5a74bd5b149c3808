#include "allocator/base/text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "allocator/base/utf8.hpp"

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

std::string lowered(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  }
  return lower;
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

// The table of optimal string alignment, of which the last three rows are kept.
std::size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, above(b.size() + 1), row(b.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = above[j] + (a[i] == b[j] ? 0 : 1);
      row[j + 1] = std::min({replaced, row[j] + 1, above[j + 1] + 1});
      const bool swapped = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
      if (swapped) row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
    before = std::exchange(above, row);
  }
  return above.back();
}

bool isNear(std::string_view given, std::string_view name) {
  if (given.empty() || name.empty()) return false;
  const std::string a = lowered(given), b = lowered(name);
  if (a.size() >= 3 && b.find(a) != std::string::npos) return true;
  if (a.find(b) != std::string::npos) return true;
  return editDistance(a, b) <= std::max<std::size_t>(b.size() / 4, 1);
}

std::string_view nearestOf(std::string_view given, std::span<const std::string_view> names) {
  std::string_view nearest;
  std::size_t least = 0;
  for (const std::string_view name : names) {
    if (!isNear(given, name)) continue;
    const std::size_t distance = editDistance(lowered(given), lowered(name));
    if (!nearest.empty() && distance >= least) continue;
    nearest = name;
    least = distance;
  }
  return nearest;
}

std::string quotedJson(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const Character c = firstCharacter(text);
    const std::size_t bytes = c.bytes == 0 ? 1 : c.bytes;
    if (c.code == '"' || c.code == '\\') out += '\\';
    if (c.bytes != 0 && c.code >= ' ' && c.code != 0x7f)
      out += text.substr(0, bytes);
    else
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(text.front()));
    text.remove_prefix(bytes);
  }
  return out += '"';
}

}  // namespace cistern
