// Bash's completion and the manual's page, each written from the outline of the command line.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "interop/command/commands.hpp"
#include "interop/command/environment.hpp"
#include "interop/command/manual/outline.hpp"

namespace cistern::command {
namespace {

// Readline takes "--policy=a" for three words, and a word to end at a colon.
constexpr const char* kBegin =
    R"(# bash completion of cistern; written by `cistern completion bash`.

# Offers the words of $1 for what is typed; with "list" those behind its last comma.
_cistern_words() {
  local head=
  if [[ $2 == list && $cur == *,* ]]; then head=${cur%,*},; fi
  mapfile -t COMPREPLY < <(compgen -P "$head" -W "$1" -- "${cur#"$head"}")
  if [[ $2 == list || $1 == *: ]]; then compopt -o nospace 2>/dev/null; fi
}

# Offers the names of files (-f), folders (-d) or commands (-c).
_cistern_names() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "$1" -- "$cur")
}

_cistern() {
  local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= word
  COMPREPLY=()
  if [[ $cur == = ]]; then
    cur=
  elif [[ $before == = ]]; then
    before=${COMP_WORDS[COMP_CWORD-2]}
  fi
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [[ $word != -* ]]; then command=$word; break; fi
  done
  case $command in
)";

/// What is offered for a value; "" for nothing.
std::string offer(const OptionOutline& option) {
  switch (option.kind) {
    case ValueKind::kWords:
      return fmt::format("_cistern_words '{}'{}", fmt::join(option.words, " "),
                         option.lists ? " list" : "");
    case ValueKind::kFile:
      return "_cistern_names -f";
    case ValueKind::kFolder:
      return "_cistern_names -d";
    case ValueKind::kProgram:
      return "_cistern_names -c";
    case ValueKind::kNone:
      break;
  }
  return "";
}

std::string caseOf(const CommandOutline& command) {
  std::string text = fmt::format("    {})\n      case $before in\n", command.name);
  for (const OptionOutline& option : command.options) {
    if (option.value.empty()) continue;
    const std::string words = offer(option);
    text += fmt::format("        {}) {}return ;;\n", fmt::join(option.names, " | "),
                        words.empty() ? "" : words + "; ");
  }
  text += fmt::format("      esac\n      if [[ $cur == -* ]]; then\n        _cistern_words '{}'\n",
                      optionWords(command.options));
  const std::string words = command.arguments.empty() ? "" : offer(command.arguments[0]);
  if (!words.empty()) text += fmt::format("      else\n        {}\n", words);
  return text + "      fi ;;\n";
}

}  // namespace

std::string bashCompletion(const Outline& outline) {
  std::string text = kBegin;
  for (const CommandOutline& command : outline.commands) text += caseOf(command);
  return text + fmt::format(
                    "    '') _cistern_words '{} {}' ;;\n  esac\n}}\n\ncomplete -F _cistern "
                    "cistern\n",
                    commandWords(outline), optionWords(outline.options));
}

namespace {

/// Text as man's macros take it: a line cannot begin a request, and a hyphen stays one. What stands
/// between backquotes is bold.
std::string manText(std::string_view text) {
  std::string out;
  bool bold = false, begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) out += "\\&";
    begins = c == '\n';
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '`':
        out += (bold = !bold) ? "\\fB" : "\\fR";
        break;
      case '\n':
        out += "\n.br\n";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string inOneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string bold(std::string_view text) { return "\\fB" + manText(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + manText(text) + "\\fR"; }

std::string optionText(const OptionOutline& option) {
  std::string head;
  for (const std::string& name : option.names)
    head +=
        (head.empty() ? "" : ", ") + (name.starts_with('-') ? bold(name) : italic(option.value));
  if (!option.value.empty() && option.names[0].starts_with('-')) head += " " + italic(option.value);
  return fmt::format(".TP\n{}\n{}\n", head, manText(option.text));
}

std::string commandText(const CommandOutline& command) {
  std::string usage = bold("cistern " + command.name) + " [" + italic("OPTIONS") + "]";
  for (const OptionOutline& argument : command.arguments)
    usage += " [" + italic(argument.value) + "]";
  std::string text =
      fmt::format(".SS {}\n{}\n.PP\n{}.\n", manText(command.name), usage, manText(command.text));
  for (const OptionOutline& argument : command.arguments) text += optionText(argument);
  for (const OptionOutline& option : command.options) text += optionText(option);
  return text;
}

}  // namespace

std::string manPage(const Outline& outline) {
  std::string page = fmt::format(
      ".TH CISTERN 1 \"\" \"Cistern {}\" \"User Commands\"\n.SH NAME\ncistern \\- replay what "
      "programs allocate on a GPU, and run programs on the allocator\n.SH SYNOPSIS\n{} {} "
      "[{}]\n.SH DESCRIPTION\n{}\n.SH OPTIONS\n",
      manText(CISTERN_VERSION), bold("cistern"), italic("COMMAND"), italic("OPTIONS"),
      manText(inOneLine(outline.text)));
  for (const OptionOutline& option : outline.options) page += optionText(option);
  page += ".SH COMMANDS\n";
  for (const CommandOutline& command : outline.commands) page += commandText(command);
  page += ".SH EXIT STATUS\n";
  for (const auto& [status, text] :
       {std::pair{"0", "All that was asked for was done."},
        std::pair{"1",
                  "A trace was not served, this machine lacks what was asked for, or the output "
                  "could not be written."},
        std::pair{"2",
                  "An argument, a variable of the environment or a file cannot be understood. "
                  "Nothing was done."}})
    page += fmt::format(".TP\n{}\n{}\n", bold(status), manText(text));
  page += ".PP\n`cistern run` ends with the status of its program.\n";
  page.replace(page.rfind("`cistern run`"), 13, bold("cistern run"));
  page += ".SH ENVIRONMENT\n";
  for (const Variable& variable : variables())
    page += fmt::format(".TP\n{}\n{}.\n", bold(variable.name), manText(variable.text));
  return page;
}

// `cistern man` and `cistern completion bash`: what the build writes for an installation.

Command addMan(CLI::App& program) {
  CLI::App* parser = program.add_subcommand("man", "Print the manual's page, for man -l");
  return {parser, [&program](Console& console) {
            console.out << manPage(outlineOf(program));
            return kDone;
          }};
}

Command addCompletion(CLI::App& program) {
  CLI::App* parser =
      program.add_subcommand("completion", "Print a script that makes bash complete words");
  const auto shell = std::make_shared<std::string>();
  parser->add_option("shell", *shell, "bash")
      ->required()
      ->check(CLI::IsMember({"bash"}))
      ->type_name("SHELL");
  return {parser, [&program, shell](Console& console) {
            console.out << bashCompletion(outlineOf(program));
            return kDone;
          }};
}

}  // namespace cistern::command
