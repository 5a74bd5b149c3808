#include "interop/command/help_format.hpp"

#include <string_view>

#include "interop/command/wrap.hpp"

namespace cistern::command {
namespace {

constexpr std::size_t kCommandColumn = 14;  ///< the longest name is "completion"
constexpr std::size_t kOptionColumn = 28;

/// A name, and what it stands for from `column` on. A line of the text is a paragraph: what does
/// not fit goes on below it, two columns further in.
std::string row(const std::string& name, std::string_view text, std::size_t column) {
  std::string rows;
  std::string begin = "  " + name;
  if (begin.size() < column) {
    begin.resize(column, ' ');
  } else {
    rows = begin + '\n';
    begin.assign(column, ' ');
  }
  while (true) {
    const std::string_view line = text.substr(0, text.find('\n'));
    rows += wrapped(line, std::string(column + 2, ' '), begin);
    if (line.size() == text.size()) return rows;
    text.remove_prefix(line.size() + 1);
    begin.assign(column, ' ');
  }
}

}  // namespace

std::string HelpFormat::make_subcommand(const CLI::App* command) const {
  return row(command->get_name(), command->get_description(), kCommandColumn);
}

std::string HelpFormat::make_option(const CLI::Option* option, bool positional) const {
  return row(make_option_name(option, positional) + make_option_opts(option),
             make_option_desc(option), kOptionColumn);
}

}  // namespace cistern::command
