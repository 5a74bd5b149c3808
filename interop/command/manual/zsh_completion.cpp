#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "interop/command/manual/manual.hpp"

namespace cistern::command {
namespace {

/// A text within single quotes, where brackets and colons stand for themselves.
std::string zshText(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, text.find('\n'))) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

/// ":NAME:ACTION", what may stand as a value.
std::string zshAction(const OptionOutline& option) {
  const std::string name = ":" + zshText(option.value) + ":";
  const std::string words = fmt::format("{}", fmt::join(option.words, " "));
  switch (option.kind) {
    case ValueKind::kWords:
      return name +
             (option.lists ? "_sequence compadd - " + words : fmt::format("({})", zshText(words)));
    case ValueKind::kFile:
      return name + "_files";
    case ValueKind::kFolder:
      return name + "_files -/";
    case ValueKind::kProgram:
      return name + "_command_names -e";
    case ValueKind::kNone:
      return "";
    case ValueKind::kOther:
      break;
  }
  return name + " ";
}

std::string zshOptions(const std::vector<OptionOutline>& options, std::string_view indent) {
  std::string text;
  for (const OptionOutline& option : options) {
    for (const std::string& name : option.names) {
      const bool with_value = option.kind != ValueKind::kNone;
      text += fmt::format(" \\\n{}'{}{}[{}]{}'", indent, name,
                          !with_value              ? ""
                          : name.starts_with("--") ? "="
                                                   : "+",
                          zshText(option.text), zshAction(option));
    }
  }
  return text;
}

std::string zshCase(const CommandOutline& command) {
  std::string text = fmt::format("    {})\n      _arguments", command.name);
  text += zshOptions(command.options, "        ");
  for (const OptionOutline& argument : command.arguments)
    text += fmt::format(" \\\n        '*{}'", zshAction(argument));
  return text + " ;;\n";
}

}  // namespace

std::string zshCompletion(const Outline& outline) {
  std::string text =
      "#compdef cistern\n# zsh completion of cistern; written by `cistern completion zsh`.\n\n"
      "_cistern() {\n  local -a commands\n  commands=(\n";
  for (const CommandOutline& command : outline.commands)
    text += fmt::format("    '{}:{}'\n", command.name, zshText(command.text));
  text += "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    _arguments" +
          zshOptions(outline.options, "      ") +
          "\n    return\n  fi\n  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n"
          "  case $command in\n";
  for (const CommandOutline& command : outline.commands) text += zshCase(command);
  return text + "  esac\n}\n\n_cistern \"$@\"\n";
}

}  // namespace cistern::command
