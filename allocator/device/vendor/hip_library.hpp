// Where HIP's runtime library is on this machine.
#pragma once

#include <string>

namespace cistern::hip {

struct LoadedLibrary {
  void* handle = nullptr;  ///< null: there is none
  std::string name;        ///< what was opened
  std::string trouble;     ///< without a handle: what was looked for, or why it cannot be loaded
};

/// The file that CISTERN_HIP_LIBRARY names, and no other; else the runtime that the program has
/// loaded; else the first libamdhip64 in $ROCM_PATH/lib, where the loader looks, or in
/// /opt/rocm/lib.
LoadedLibrary loadLibrary();

}  // namespace cistern::hip
