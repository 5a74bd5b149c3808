// `cistern options`: what can be chosen about the allocator, from its one table of options.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "allocator/base/option_table.hpp"
#include "allocator/base/printable.hpp"
#include "cistern/options.hpp"
#include "interop/command/commands.hpp"
#include "interop/command/did_you_mean.hpp"
#include "interop/command/wrap.hpp"

namespace cistern::command {
namespace {

constexpr std::string_view kIndent = "    ";

struct OptionsArguments {
  std::string name;  ///< empty: all
  bool markdown = false;
};

std::string describe(const OptionRow& row) {
  std::string lines = fmt::format("{}:{}\n", row.name, row.print(Options{}));
  lines += wrapped(row.text, kIndent);
  lines += wrapped(fmt::format("Allowed: {}.", row.allowed()), kIndent);
  if (!row.pytorch.empty() && row.pytorch != row.name) {
    lines += wrapped(fmt::format("PyTorch's spelling: {}.", row.pytorch), kIndent);
  }
  return lines;
}

std::string optionsText() {
  std::string text =
      "Set them with CISTERN_CONF=name:value,... in the environment, or with --conf of "
      "`cistern replay`\nand `cistern run`. Shown with their defaults; `cistern options NAME` says "
      "what is set here.\n";
  for (const OptionRow& row : optionTable()) text += "\n" + describe(row);
  return text;
}

/// By its name, or by PyTorch's spelling of it.
const OptionRow& rowNamed(const std::string& name) {
  std::vector<std::string_view> names;
  for (const OptionRow& row : optionTable()) {
    if (row.name == name || (!row.pytorch.empty() && row.pytorch == name)) return row;
    names.push_back(row.name);
  }
  const std::string hint = didYouMean(name, names);
  throw UsageError(hint.empty() ? fmt::format("unknown option '{}': must be one of {}", name,
                                              fmt::join(names, ", "))
                                : fmt::format("unknown option '{}'{}", name, hint));
}

/// Its value in a program that is started here.
std::string nowText(const OptionRow& row) try {
  const std::string now = row.print(Options::fromEnvironment());
  if (now != row.print(Options{})) return fmt::format("Now: {}, from CISTERN_CONF.", now);
  return fmt::format("Now: {}, the default.", now);
} catch (const OptionError& error) {
  return fmt::format("Now: none, as CISTERN_CONF cannot be read ({}).", printable(error.what()));
}

ExitStatus printOptions(const OptionsArguments& a, Console& console) {
  if (!a.name.empty()) {
    const OptionRow& row = rowNamed(a.name);
    console.out << describe(row) << wrapped(nowText(row), kIndent);
  } else {
    console.out << (a.markdown ? optionsMarkdown() : optionsText());
  }
  return kDone;
}

}  // namespace

Command addOptions(CLI::App& program) {
  CLI::App* parser = program.add_subcommand("options", "Print the allocator's options");
  const auto arguments = std::make_shared<OptionsArguments>();
  auto* name =
      parser->add_option("name", arguments->name, "One option, with its value here; else all")
          ->check(kNotEmpty)
          ->type_name("NAME");
  parser->add_flag("--markdown", arguments->markdown, "As a page of documentation: docs/options.md")
      ->excludes(name);
  return {parser, [arguments](Console& console) { return printOptions(*arguments, console); }};
}

}  // namespace cistern::command
