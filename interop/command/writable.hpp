// The files that options name: whether one can be written, asked before the work whose result goes
// there, and the writing.
#pragma once

#include <string>

namespace cistern::command {

/// Throws UsageError if the file cannot be written. An existing file stays unchanged, and a missing
/// one stays missing. `option`: the option that named it.
void requireWritable(const std::string& option, const std::string& path);

/// Writes the file as a ReplacedFile. Throws Error that names the option, the file and the reason.
void writeFile(const std::string& option, const std::string& path, const std::string& text);

}  // namespace cistern::command
