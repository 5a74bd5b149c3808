// The rule for options that name something.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace cistern::command {

/// An empty text is no value, and not the same as none given.
inline const CLI::Validator kNotEmpty(
    [](std::string& text) { return text.empty() ? "needs a value, and '' is none" : ""; }, "");

/// An option in the place of a file's name is no name: the name was forgotten.
inline const CLI::Validator kFileName(
    [](std::string& text) {
      if (text.empty()) return std::string("needs a value, and '' is none");
      if (text[0] != '-') return std::string();
      return "needs a value, and '" + text + "' looks like an option (a file: ./" + text + ")";
    },
    "");

}  // namespace cistern::command
