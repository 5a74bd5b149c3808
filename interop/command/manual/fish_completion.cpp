#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "interop/command/manual/manual.hpp"

namespace cistern::command {
namespace {

/// The first line of a text, within single quotes.
std::string fishText(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, text.find('\n'))) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return "'" + out + "'";
}

/// -r: a value is needed; -f: no files; -F: files.
std::string fishValue(const OptionOutline& option) {
  switch (option.kind) {
    case ValueKind::kNone:
      return "";
    case ValueKind::kWords:
      return fmt::format(" -x -a '{}'", fmt::join(option.words, " "));
    case ValueKind::kFile:
      return " -r -F";
    case ValueKind::kFolder:
      return " -x -a '(__fish_complete_directories)'";
    case ValueKind::kProgram:
      return " -x -a '(__fish_complete_command)'";
    case ValueKind::kOther:
      break;
  }
  return " -x";
}

std::string fishLine(std::string_view condition, const OptionOutline& option) {
  std::string line = fmt::format("complete -c cistern -n '{}'", condition);
  for (const std::string& name : option.names) {
    if (name.starts_with("--")) {
      line += " -l " + name.substr(2);
    } else if (name.starts_with('-')) {
      line += " -s " + name.substr(1);
    }
  }
  return line + fishValue(option) + " -d " + fishText(option.text) + "\n";
}

}  // namespace

std::string fishCompletion(const Outline& outline) {
  std::string text =
      "# fish completion of cistern; written by `cistern completion fish`.\ncomplete -c cistern "
      "-f\n";
  for (const OptionOutline& option : outline.options)
    text += fishLine("__fish_use_subcommand", option);
  for (const CommandOutline& command : outline.commands) {
    text += fmt::format("complete -c cistern -n __fish_use_subcommand -a {} -d {}\n", command.name,
                        fishText(command.text));
    const std::string inside = "__fish_seen_subcommand_from " + command.name;
    for (const OptionOutline& option : command.options) text += fishLine(inside, option);
    for (const OptionOutline& argument : command.arguments) text += fishLine(inside, argument);
  }
  return text;
}

}  // namespace cistern::command
