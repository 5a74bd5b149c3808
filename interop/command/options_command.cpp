// `cistern options`: what can be chosen about the allocator, from its one table of options.
#include <memory>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "allocator/base/option_table.hpp"
#include "cistern/options.hpp"
#include "interop/command/commands.hpp"
#include "interop/command/wrap.hpp"

namespace cistern::command {
namespace {

constexpr std::string_view kIndent = "    ";

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
      "`cistern replay`.\nShown with their defaults.\n";
  for (const OptionRow& row : optionTable()) text += "\n" + describe(row);
  return text;
}

}  // namespace

Command addOptions(CLI::App& program) {
  CLI::App* parser = program.add_subcommand("options", "Print the allocator's options");
  const auto markdown = std::make_shared<bool>(false);
  parser->add_flag("--markdown", *markdown, "As a page of documentation: docs/options.md");
  return {parser, [markdown](Console& console) {
            console.out << (*markdown ? optionsMarkdown() : optionsText());
            return kDone;
          }};
}

}  // namespace cistern::command
