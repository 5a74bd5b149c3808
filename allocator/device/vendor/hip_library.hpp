// HIP's runtime library on this machine.
#pragma once

#include <string>

namespace cistern::hip {

struct LoadedLibrary {
  void* handle = nullptr;  ///< null: not found, or not loaded
  std::string name;        ///< of the opened file
  std::string trouble;     ///< without a handle: what was looked for, or why it cannot be loaded
};

/// The file that CISTERN_HIP_LIBRARY names, and no other. Without that, the runtime that the
/// program has loaded. Else the first libamdhip64 in $ROCM_PATH/lib, in the loader's folders, or in
/// /opt/rocm/lib.
LoadedLibrary loadLibrary();

}  // namespace cistern::hip
