// Whether a file can be written, asked before the work whose result goes there.
#pragma once

#include <string>

namespace cistern::command {

/// Throws UsageError if the file cannot be written. An existing file stays unchanged, and a missing
/// one stays missing. `option`: the option that named it.
void requireWritable(const std::string& option, const std::string& path);

}  // namespace cistern::command
