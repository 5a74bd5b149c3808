#include "interop/command/manual/outline.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "allocator/base/option_table.hpp"
#include "allocator/device/backends.hpp"
#include "interop/command/help.hpp"
#include "interop/command/replay/policy.hpp"
#include "interop/command/report/report_arguments.hpp"
#include "interop/programs/generate.hpp"

namespace cistern::command {
namespace {

// ---- The words that a value may be
// ---------------------------------------------------------------

using Words = std::vector<std::string>;

Words backendWords() {
  Words words;
  for (const Backend* const backend : backends()) words.emplace_back(backend->name);
  return words;
}

Words deviceWords() {
  Words words = backendWords();
  words.insert(words.begin(), "auto");
  return words;
}

Words policyWords() {
  Words words;
  for (const PolicyKind& kind : policyKinds()) words.emplace_back(kind.name);
  return words;
}

// The user goes on with a seed.
Words programWords() {
  Words words{"all:"};
  for (const programs::Kind& kind : programs::kinds())
    words.push_back(fmt::format("{}:", kind.name));
  return words;
}

Words optionNames() {
  Words words;
  for (const OptionRow& row : optionTable()) words.emplace_back(row.name);
  return words;
}

Words formatWords() { return reportFormats(); }

Words shellWords() { return {"bash"}; }

struct WordsOf {
  std::string_view command;
  std::string_view value;  ///< the option's first long name, or the argument's
  Words (*words)();
  bool lists;
};

constexpr WordsOf kWordsOf[] = {
    {"replay", "--policy", policyWords, true},    {"replay", "--device", deviceWords, false},
    {"replay", "--generate", programWords, true}, {"generate", "program", programWords, false},
    {"doctor", "--device", backendWords, false},  {"options", "name", optionNames, false},
    {"completion", "shell", shellWords, false},   {"report", "--policy", policyWords, true},
    {"report", "--format", formatWords, false},
};

// ---- From the parser
// -----------------------------------------------------------------------------

ValueKind kindOfType(std::string_view type) {
  if (type.starts_with("FILE") || type == "TRACE") return ValueKind::kFile;
  if (type == "FOLDER") return ValueKind::kFolder;
  if (type == "COMMAND") return ValueKind::kProgram;
  return ValueKind::kNone;
}

std::vector<std::string> namesOf(const CLI::Option& option) {
  if (option.get_positional()) return {option.get_name(true, false)};
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

// The parser adds what its checks say of themselves: ":{cuda,hip}", ":INT in [1 - 9]".
std::string typeOf(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return {};
  std::string type = option.get_type_name();
  type.resize(std::min(type.find(":{"), type.size()));
  if (const std::size_t range = type.find(" in ["); range != type.npos)
    type.resize(type.rfind(':', range));
  return type;
}

OptionOutline outlineOf(const CLI::Option& option, std::string_view command) {
  OptionOutline outline;
  outline.names = namesOf(option);
  outline.value = typeOf(option);
  outline.text = option.get_description();
  outline.kind = kindOfType(outline.value);
  for (const WordsOf& row : kWordsOf) {
    if (row.command != command || row.value != outline.names.back()) continue;
    outline.kind = ValueKind::kWords;
    outline.words = row.words();
    outline.lists = row.lists;
  }
  return outline;
}

CommandOutline commandOutline(const CLI::App& parser) {
  CommandOutline outline{parser.get_name(), parser.get_description(), {}, {}};
  for (const CLI::Option* const option : parser.get_options())
    (option->get_positional() ? outline.arguments : outline.options)
        .push_back(outlineOf(*option, outline.name));
  return outline;
}

}  // namespace

Outline outlineOf(const CLI::App& program) {
  Outline outline{program.get_description(), commandOutline(program).options, {}};
  for (const CLI::App* const command : commandsOf(program))
    outline.commands.push_back(commandOutline(*command));
  for (CommandOutline& command : outline.commands) {
    if (command.name != "help") continue;
    command.arguments.at(0).kind = ValueKind::kWords;
    command.arguments.at(0).words = commandNames(program);
  }
  return outline;
}

std::string commandWords(const Outline& outline) {
  std::string words;
  for (const CommandOutline& command : outline.commands)
    words += (words.empty() ? "" : " ") + command.name;
  return words;
}

std::string optionWords(const std::vector<OptionOutline>& options) {
  std::vector<std::string> names;
  for (const OptionOutline& option : options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return fmt::format("{}", fmt::join(names, " "));
}

}  // namespace cistern::command
