#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "allocator/base/text.hpp"
#include "cistern/options.hpp"

namespace cistern {
namespace {

// A key in MiB: a power of two. Like PyTorch, takes 65536 for the last interval too.
std::optional<std::size_t> readInterval(std::string_view text) {
  const auto mib = readCount(text);
  if (!mib || !std::has_single_bit(*mib) || *mib > 65536) return std::nullopt;
  return std::min<std::size_t>(std::size_t(std::countr_zero(*mib)),
                               RoundupDivisions::kIntervals - 1);
}

// Within a list 0 is a value too: it turns the rounding off for one interval.
std::optional<std::uint8_t> readDivisions(std::string_view text, bool zero_allowed) {
  const auto count = readCount(text);
  if (!count || *count > RoundupDivisions::kMaxDivisions) return std::nullopt;
  if (!std::has_single_bit(*count) && !(zero_allowed && *count == 0)) return std::nullopt;
  return std::uint8_t(*count);
}

}  // namespace

std::uint64_t RoundupDivisions::divisionsFor(std::uint64_t bytes) const noexcept {
  const auto interval = std::size_t(std::bit_width(bytes / kMiB));
  return divisions_[interval == 0 ? 0 : std::min(interval - 1, kIntervals - 1)];
}

std::optional<RoundupDivisions> RoundupDivisions::read(std::string_view text) {
  if (text == "off") return RoundupDivisions{};
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
    return readList(text.substr(1, text.size() - 2));
  }
  const auto divisions = readDivisions(text, false);
  if (!divisions) return std::nullopt;
  RoundupDivisions result;
  result.divisions_.fill(*divisions);
  return result;
}

std::optional<RoundupDivisions> RoundupDivisions::readList(std::string_view entries) {
  RoundupDivisions result;
  auto& table = result.divisions_;
  std::size_t next = 0;        // the first interval above the last key
  std::uint64_t last_key = 0;  // keys ascend, so that no entry silently replaces another
  for (bool more = true; more;) {
    std::string_view value = cutAt(entries, ',', more);
    bool has_value = false;
    const std::string_view key = trimmed(cutAt(value, ':', has_value));
    const auto divisions = readDivisions(trimmed(value), true);
    if (!has_value || !divisions) return std::nullopt;
    if (key == ">") {
      std::fill(table.begin() + std::ptrdiff_t(next), table.end(), *divisions);
      return more ? std::nullopt : std::optional(result);
    }
    const auto interval = readInterval(key);
    if (!interval || *readCount(key) <= last_key) return std::nullopt;
    if (last_key == 0) std::fill_n(table.begin(), *interval, *divisions);
    table[*interval] = *divisions;
    last_key = *readCount(key);
    next = *interval + 1;
  }
  return result;
}

std::string RoundupDivisions::print() const {
  const auto head = std::find_if(divisions_.begin(), divisions_.end(),
                                 [&](std::uint8_t d) { return d != divisions_.front(); });
  if (head == divisions_.end()) {
    return divisions_.front() == 0 ? "off" : fmt::format("{}", divisions_.front());
  }
  // From the end of the leading run, which one key covers, to the trailing run, which '>' covers.
  const auto tail = std::find_if(divisions_.rbegin(), divisions_.rend(),
                                 [&](std::uint8_t d) { return d != divisions_.back(); });
  std::string text = "[";
  for (auto entry = head - 1; entry != tail.base(); ++entry) {
    text += fmt::format("{}:{},", std::uint64_t{1} << (entry - divisions_.begin()), *entry);
  }
  return text + fmt::format(">:{}]", divisions_.back());
}

}  // namespace cistern
