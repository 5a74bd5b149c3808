// A vendor's runtime library on this machine, found when the program runs. cuda_library.cpp and
// hip_library.cpp say what each vendor's is called and where it lies.
#pragma once

#include <string>
#include <vector>

namespace cistern {

/// A library as it is looked for.
struct LibrarySearch {
  std::string what;                  ///< for messages: "HIP's runtime"
  const char* variable;              ///< of the environment; it names the file
  std::string stem;                  ///< of each file that is such a library, whatever its version
  std::vector<std::string> names;    ///< of the file, the best first
  std::vector<std::string> folders;  ///< each with a slash at its end; "" is where the loader looks
  std::string places;                ///< the folders, for messages
  /// Why an opened library cannot serve ("is of CUDA 12.4"); empty if it can.
  std::string (*refusal)(void* library);
};

struct LoadedLibrary {
  void* handle = nullptr;  ///< null: not found, or refused
  std::string file;        ///< that was opened, as the loader found it
  std::string trouble;     ///< without a handle: what was looked for, or why it cannot serve
};

/// The file that the variable names, and no other. Without that, the one that the process has
/// loaded, and no other. Else the first in the folders that can serve. It stays open.
LoadedLibrary loadLibrary(const LibrarySearch& search);

/// The variable's value. Null when it is not set, is empty, or the program has more rights than the
/// user who started it.
const char* trustedVariable(const char* name);

/// The folder of the file that this code is in, without a slash at its end. Empty when the loader
/// does not know its absolute path.
std::string ownFolder();

}  // namespace cistern
