// The variables of the environment that Cistern reads, and what is wrong with their values here.
// docs/environment.md has a page of them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cistern::command {

struct Variable {
  std::string_view name;
  std::string_view text;  ///< what it is for, in a sentence without its end
  /// The fault of a value: a text that names the variable and what is allowed. Empty:
  /// nothing. Null: any value is right.
  std::string (*problem)(const std::string& value);
};

/// Those that begin with CISTERN_, in the order of the page.
std::span<const Variable> variables();

/// A variable that begins with CISTERN_ and is set here.
struct Setting {
  std::string name;
  std::string value;
  std::string problem;  ///< as Variable::problem
  std::string warning;  ///< nothing reads a variable of that name. Empty: something does
};

/// By name.
std::vector<Setting> environmentSettings();

/// Throws UsageError, which names the variable, if CISTERN_BACKEND names no backend.
void requireKnownBackend();

}  // namespace cistern::command
