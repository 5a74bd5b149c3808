// The one table of options. Internal to the options; read option_table.cpp for the rows.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "allocator/base/option_rules.hpp"

namespace cistern {

using OptionRule = std::variant<BytesRule, CountRule, FractionRule, SwitchRule, BackingRule,
                                RecycleRule, CrossStreamRule, DivisionsRule, FolderRule>;

/// One option: everything about it except its default, which is its field's.
struct OptionRow {
  std::string_view name;
  std::string_view pytorch;  ///< PyTorch's key for it, or empty; one that ends in _mb counts MiB
  OptionRule rule;
  std::string_view text;  ///< its description, for docs/options.md

  /// Sets the option from `value`, given under `key` (the name or PyTorch's). If the value is not
  /// allowed, returns false and leaves `options` unchanged.
  bool set(Options& options, std::string_view key, std::string_view value) const;
  std::string print(const Options& options) const;
  std::string allowed() const;
  /// What a refused `value`, given under `key`, was read as: " (24 without a unit is 24 bytes)".
  /// Empty when that goes without saying.
  std::string readAs(std::string_view key, std::string_view value) const;
};

std::span<const OptionRow> optionTable();

/// docs/options.md: every option with its default, what it allows, and what it is for.
std::string optionsMarkdown();

}  // namespace cistern
