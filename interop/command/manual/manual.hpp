// The files of an installation that say how the command is used.
#pragma once

#include <string>

#include "interop/command/manual/outline.hpp"

namespace cistern::command {

/// The manual's page cistern.1, in man's macros.
std::string manPage(const Outline& outline);

/// A script that makes bash complete the words of `cistern`. It needs no other file.
std::string bashCompletion(const Outline& outline);

}  // namespace cistern::command
