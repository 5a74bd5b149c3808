// The files of an installation that say how the command is used.
#pragma once

#include <string>

#include "interop/command/manual/outline.hpp"

namespace cistern::command {

/// The manual's page cistern.1, in man's macros.
std::string manPage(const Outline& outline);

/// Scripts that make a shell complete the words of `cistern`. They need no other file.
std::string bashCompletion(const Outline& outline);
std::string zshCompletion(const Outline& outline);
std::string fishCompletion(const Outline& outline);

}  // namespace cistern::command
