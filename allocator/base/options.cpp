#include "cistern/options.hpp"

#include <cstdlib>

#include <fmt/format.h>

#include "allocator/base/option_table.hpp"
#include "allocator/base/text.hpp"

namespace cistern {
namespace {

// One "key:value" of a conf, and where it starts (columns count from 1).
struct Item {
  std::string_view text;
  std::size_t column;
};

// The text from `start` to the next comma that stands in no bracket.
Item itemAt(std::string_view conf, std::size_t start) {
  int depth = 0;
  std::size_t end = start;
  for (; end < conf.size() && !(conf[end] == ',' && depth <= 0); ++end) {
    depth += conf[end] == '[' ? 1 : conf[end] == ']' ? -1 : 0;
  }
  return {conf.substr(start, end - start), start + 1};
}

const OptionRow* findRow(std::string_view key) {
  for (const OptionRow& row : optionTable()) {
    if (key == row.name || (!row.pytorch.empty() && key == row.pytorch)) return &row;
  }
  return nullptr;
}

[[noreturn]] void refuseKey(std::string_view key, std::size_t column) {
  std::string near, all;
  for (const OptionRow& row : optionTable()) {
    const auto add = [&](std::string& list, std::string_view name) {
      list += list.empty() ? "" : ", ";
      list += name;
    };
    add(all, row.name);
    if (isNear(key, row.name)) add(near, row.name);
    if (row.pytorch != row.name && isNear(key, row.pytorch)) add(near, row.pytorch);
  }
  throw OptionError(
      fmt::format("column {}: no option is named '{}'; {} {}", column, key,
                  near.empty() ? "there are:" : "near it:", near.empty() ? all : near));
}

void apply(Options& options, Item item) {
  std::string_view value = item.text;
  bool has_value = false;
  const std::string_view key = trimmed(cutAt(value, ':', has_value));
  value = trimmed(value);
  if (key.empty()) {
    throw OptionError(
        fmt::format("column {}: expected key:value, given '{}'", item.column, item.text));
  }
  const OptionRow* row = findRow(key);
  if (row == nullptr) refuseKey(key, item.column);
  if (!has_value) {
    throw OptionError(fmt::format("column {}: option '{}' has no value; allowed: {}", item.column,
                                  key, row->allowed()));
  }
  if (!row->set(options, key, value)) {
    throw OptionError(fmt::format("column {}: option '{}' cannot be '{}'; allowed: {}{}",
                                  item.column, key, value, row->allowed(),
                                  row->readAs(key, value)));
  }
}

}  // namespace

Options Options::parse(std::string_view conf, const Options& base) {
  Options options = base;
  if (trimmed(conf).empty()) return options;
  for (std::size_t start = 0; start <= conf.size();) {
    const Item item = itemAt(conf, start);
    apply(options, item);
    start += item.text.size() + 1;
  }
  return options;
}

Options Options::parse(std::string_view conf) { return parse(conf, Options{}); }

Options Options::fromEnvironment() {
  const char* conf = std::getenv("CISTERN_CONF");
  if (conf == nullptr) return {};
  try {
    return parse(conf);
  } catch (const OptionError& error) {
    throw OptionError(fmt::format("CISTERN_CONF, {}", error.what()));
  }
}

std::string Options::conf() const {
  std::string conf;
  for (const OptionRow& row : optionTable()) {
    const std::string value = row.print(*this);
    if (value == row.print(Options{})) continue;
    conf += fmt::format("{}{}:{}", conf.empty() ? "" : ",", row.name, value);
  }
  return conf;
}

bool operator==(const Options& a, const Options& b) { return a.conf() == b.conf(); }

}  // namespace cistern
