// What options that name something are held to.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace cistern::command {

/// An empty text is no value, and not the same as none given.
inline const CLI::Validator kNotEmpty(
    [](std::string& text) { return text.empty() ? "needs a value, and '' is none" : ""; }, "");

}  // namespace cistern::command
