// The command line as a plain list, from its definitions for the parser. The manual and bash's
// completion are written from it, so that they name what there is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cistern::command {

/// The words that bash offers for a value.
enum class ValueKind : std::uint8_t { kNone, kWords, kFile, kFolder, kProgram };

/// An option, or an argument that stands without a name.
struct OptionOutline {
  std::vector<std::string> names;  ///< "-h", "--help"; of an argument its name alone
  std::string value;               ///< "SIZE"; empty for a flag
  std::string text;                ///< may have several lines
  ValueKind kind = ValueKind::kNone;
  std::vector<std::string> words;  ///< for kWords: what the value may be
  bool lists = false;              ///< several words may stand behind one option, as a,b,c
};

struct CommandOutline {
  std::string name;
  std::string text;
  std::vector<OptionOutline> options;    ///< those with a name
  std::vector<OptionOutline> arguments;  ///< those without
};

struct Outline {
  std::string text;
  std::vector<OptionOutline> options;  ///< of the program itself
  std::vector<CommandOutline> commands;
};

/// Without the commands that --help does not list.
Outline outlineOf(const CLI::App& program);

/// The names of all commands, with a blank between two.
std::string commandWords(const Outline& outline);
/// All names of the options, with a blank between two.
std::string optionWords(const std::vector<OptionOutline>& options);

// The files of an installation that say how the command is used.

/// The manual's page cistern.1, in man's macros.
std::string manPage(const Outline& outline);

/// A script that makes bash complete the words of `cistern`. It needs no other file.
std::string bashCompletion(const Outline& outline);

}  // namespace cistern::command
