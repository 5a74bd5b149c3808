// What --help prints, within the page's width: CLI11's own formatter breaks no line.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace cistern::command {

class HelpFormat final : public CLI::Formatter {
 public:
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_option(const CLI::Option* option, bool positional) const override;
};

}  // namespace cistern::command
