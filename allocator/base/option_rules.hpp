// The kinds of option. Each rule knows its field, reads and prints its values, and describes what
// it allows. Internal to the options; option_table.cpp gives every option one of these.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cistern/options.hpp"

namespace cistern {

/// A word that stands for one value outside the range: "unlimited", "off", "none".
template <class Value>
struct Special {
  std::string_view word;
  Value value{};
};

/// A size, in any spelling of parseBytes.
struct BytesRule {
  std::uint64_t Options::*field;
  std::uint64_t min, max;
  std::uint64_t multiple = 1;
  std::optional<Special<std::uint64_t>> special{};

  /// The value that `text` names, or nothing when it is not allowed. (So in every rule.)
  std::optional<std::uint64_t> read(std::string_view text) const;
  /// The text that read() takes back to the value.
  std::string print(std::uint64_t value) const;
  /// The values that read() takes, in words, for messages and documentation.
  std::string allowed() const;
};

/// A whole number.
struct CountRule {
  std::uint64_t Options::*field;
  std::uint64_t min, max;

  std::optional<std::uint64_t> read(std::string_view text) const;
  std::string print(std::uint64_t value) const;
  std::string allowed() const;
};

/// A number above 0, up to 1.
struct FractionRule {
  double Options::*field;
  bool one_allowed;
  std::optional<Special<double>> special{};

  std::optional<double> read(std::string_view text) const;
  std::string print(double value) const;
  std::string allowed() const;
};

/// Yes or no.
struct SwitchRule {
  bool Options::*field;

  std::optional<bool> read(std::string_view text) const;
  std::string print(bool value) const;
  std::string allowed() const;
};

/// The path of a folder, or none.
struct FolderRule {
  std::string Options::*field;

  std::optional<std::string> read(std::string_view text) const;
  std::string print(const std::string& value) const;
  std::string allowed() const;
};

/// One of a few words, each of which stands for a value.
template <class Value, std::size_t Count>
struct WordRule {
  Value Options::*field;
  std::array<Special<Value>, Count> words;

  std::optional<Value> read(std::string_view text) const;
  std::string print(Value value) const;
  std::string allowed() const;
};

using BackingRule = WordRule<Backing, 2>;
using RecycleRule = WordRule<Recycle, 3>;
using CrossStreamRule = WordRule<CrossStreamReuse, 7>;
extern template struct WordRule<Backing, 2>;
extern template struct WordRule<Recycle, 3>;
extern template struct WordRule<CrossStreamReuse, 7>;

struct DivisionsRule {
  RoundupDivisions Options::*field;

  std::optional<RoundupDivisions> read(std::string_view text) const;
  std::string print(const RoundupDivisions& value) const;
  std::string allowed() const;
};

}  // namespace cistern
