#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "interop/command/environment.hpp"
#include "interop/command/manual/manual.hpp"

namespace cistern::command {
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

}  // namespace cistern::command
