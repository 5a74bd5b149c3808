// The file of a library, looked at before the loader opens it. The loader waits for a writer when
// it opens a named pipe. A file that is shorter than its head says kills a process that touches
// what is missing.
#pragma once

#include <string>

namespace cistern {

/// Why the loader must not open the file; empty if it may. `name` is a path, or without a slash a
/// name that the loader looks for in the folders of LD_LIBRARY_PATH first. A file that is missing,
/// or is no library, is left to the loader.
std::string fileRefusal(const std::string& name);

}  // namespace cistern
