#include "allocator/base/option_rules.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "allocator/base/text.hpp"

namespace cistern {
namespace {

// Exact, unlike formatBytes: in the largest unit that divides the value.
std::string exactBytes(std::uint64_t bytes) {
  if (bytes == 0 || bytes % kKiB != 0) return fmt::format("{} B", bytes);
  if (bytes % kMiB != 0) return fmt::format("{} KiB", bytes / kKiB);
  if (bytes % kGiB != 0) return fmt::format("{} MiB", bytes / kMiB);
  if (bytes % kTiB != 0) return fmt::format("{} GiB", bytes / kGiB);
  return fmt::format("{} TiB", bytes / kTiB);
}

template <class Value>
std::string orWord(const std::optional<Special<Value>>& special) {
  return special ? fmt::format(", or {}", special->word) : "";
}

}  // namespace

// ---- Sizes -----------------------------------------------------------------------------------

std::optional<std::uint64_t> BytesRule::read(std::string_view text) const try {
  if (special && text == special->word) return special->value;
  const std::uint64_t value = parseBytes(text);
  if (value < min || value > max || value % multiple != 0) return std::nullopt;
  return value;
} catch (const InvalidArgument&) {
  return std::nullopt;
}

std::string BytesRule::print(std::uint64_t value) const {
  return special && value == special->value ? std::string(special->word) : exactBytes(value);
}

std::string BytesRule::allowed() const {
  const std::string granule = multiple > 1 ? ", a multiple of " + exactBytes(multiple) : "";
  return fmt::format("{} to {}{}{}", exactBytes(min), exactBytes(max), granule, orWord(special));
}

// ---- Numbers ---------------------------------------------------------------------------------

std::optional<std::uint64_t> CountRule::read(std::string_view text) const {
  const auto value = readCount(text);
  return value && *value >= min && *value <= max ? value : std::nullopt;
}

std::string CountRule::print(std::uint64_t value) const { return fmt::format("{}", value); }

std::string CountRule::allowed() const {
  return fmt::format("a whole number from {} to {}", min, max);
}

std::optional<double> FractionRule::read(std::string_view text) const {
  if (special && text == special->word) return special->value;
  const auto value = readReal(text);
  const bool fits = value && *value > 0 && (*value < 1 || (one_allowed && *value == 1));
  return fits ? value : std::nullopt;
}

std::string FractionRule::print(double value) const {
  return special && value == special->value ? std::string(special->word) : fmt::format("{}", value);
}

std::string FractionRule::allowed() const {
  return fmt::format("a number above 0, {}{}", one_allowed ? "up to 1" : "below 1",
                     orWord(special));
}

// ---- Words -----------------------------------------------------------------------------------

std::optional<bool> SwitchRule::read(std::string_view text) const {
  if (text == "true" || text == "True" || text == "1") return true;
  if (text == "false" || text == "False" || text == "0") return false;
  return std::nullopt;
}

std::string SwitchRule::print(bool value) const { return value ? "true" : "false"; }

std::string SwitchRule::allowed() const { return "true or false (True, False, 1, 0)"; }

// A comma would end it, and a bracket would join it to what follows.
std::optional<std::string> FolderRule::read(std::string_view text) const {
  if (text == "none") return std::string();
  const auto refused = [](char c) {
    return c == ',' || c == '[' || c == ']' || (c >= 0 && c < ' ') || c == 127;
  };
  if (text.empty() || std::ranges::any_of(text, refused)) return std::nullopt;
  return std::string(text);
}

std::string FolderRule::print(const std::string& value) const {
  return value.empty() ? "none" : value;
}

std::string FolderRule::allowed() const {
  return "the path of a folder, without commas and brackets, or none";
}

template <class Value, std::size_t Count>
std::optional<Value> WordRule<Value, Count>::read(std::string_view text) const {
  for (const auto& [word, value] : words) {
    if (text == word) return value;
  }
  return std::nullopt;
}

template <class Value, std::size_t Count>
std::string WordRule<Value, Count>::print(Value value) const {
  for (const auto& [word, meant] : words) {
    if (meant == value) return std::string(word);
  }
  return {};
}

template <class Value, std::size_t Count>
std::string WordRule<Value, Count>::allowed() const {
  std::string text;
  for (std::size_t i = 0; i < Count; ++i) {
    if (i > 0) text += i + 1 == Count ? " or " : ", ";
    text += words[i].word;
  }
  return text;
}

template struct WordRule<Backing, 2>;
template struct WordRule<Recycle, 3>;
template struct WordRule<CrossStreamReuse, 7>;

std::optional<RoundupDivisions> DivisionsRule::read(std::string_view text) const {
  return RoundupDivisions::read(text);
}

std::string DivisionsRule::print(const RoundupDivisions& value) const { return value.print(); }

std::string DivisionsRule::allowed() const {
  return "a power of two from 1 to 64; or a list such as [256:1,512:2,>:4]; or off. The keys are "
         "ascending powers of two from 1 to 65536 MiB, each with such a number or 0";
}

}  // namespace cistern
