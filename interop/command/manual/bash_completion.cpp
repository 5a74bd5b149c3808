#include <fmt/format.h>
#include <fmt/ranges.h>

#include "interop/command/manual/manual.hpp"

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

}  // namespace cistern::command
