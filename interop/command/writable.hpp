// Whether a file can be written, asked before the work whose result goes there.
#pragma once

#include <string>

namespace cistern::command {

/// Throws UsageError where the file cannot be written. What is there stays as it is, and where
/// nothing is nothing is left. `option`: what named it.
void requireWritable(const std::string& option, const std::string& path);

}  // namespace cistern::command
