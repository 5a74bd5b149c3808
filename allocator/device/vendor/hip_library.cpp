#include "allocator/device/vendor/hip_library.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>
#include <sys/auxv.h>

#include "allocator/device/vendor/hip_runtime.hpp"

namespace cistern::hip {
namespace {

/// Null when it is not set, is empty, or the program has more rights than the user who started it.
const char* environment(const char* name) {
  const char* const value = secure_getenv(name);
  return value != nullptr && *value != 0 ? value : nullptr;
}

/// Whether the program names no loader, as -static and -static-pie link it. glibc's dlopen exists
/// all the same, and crashes on a library that exists.
bool linkedStatically() {
  const auto* const first = reinterpret_cast<const ElfW(Phdr)*>(getauxval(AT_PHDR));
  const auto isLoader = [](const ElfW(Phdr) & header) { return header.p_type == PT_INTERP; };
  return first != nullptr && std::none_of(first, first + getauxval(AT_PHNUM), isLoader);
}

/// First the version of our headers: others lay out a few structures differently. Only the
/// development files bring the name without a version.
std::vector<std::string> fileNames() {
  std::vector<std::string> names{fmt::format("libamdhip64.so.{}", HIP_VERSION_MAJOR),
                                 "libamdhip64.so"};
  for (int major = 7; major >= 5; --major) {
    if (major != HIP_VERSION_MAJOR) names.push_back(fmt::format("libamdhip64.so.{}", major));
  }
  return names;
}

/// Each with a slash at its end; "" is where the loader looks.
std::vector<std::string> folders() {
  std::vector<std::string> found{"", "/opt/rocm/lib/"};
  if (const char* const rocm = environment("ROCM_PATH"); rocm != nullptr) {
    found.insert(found.begin(), std::string(rocm) + "/lib/");
  }
  return found;
}

/// Post: without a handle, `trouble` is the loader's message about the first existing file.
bool open(LoadedLibrary& library, const std::string& file, int mode = 0) {
  library.handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | mode);
  if (library.handle != nullptr) {
    library.name = file;
    return true;
  }
  const char* const said = dlerror();
  const std::string absent = file + ": cannot open shared object file: No such file or directory";
  if (said != nullptr && said != absent && library.trouble.empty()) library.trouble = said;
  return false;
}

bool openAny(LoadedLibrary& library, const std::string& folder, int mode = 0) {
  for (const std::string& name : fileNames()) {
    if (open(library, folder + name, mode)) return true;
  }
  return false;
}

LoadedLibrary loadNamed(const char* file) {
  LoadedLibrary library;
  if (open(library, file)) return library;
  const std::string why = library.trouble.empty() ? "there is no such file" : library.trouble;
  library.trouble = fmt::format("CISTERN_HIP_LIBRARY is {}, which cannot be loaded: {}", file, why);
  return library;
}

}  // namespace

LoadedLibrary loadLibrary() {
  if (linkedStatically()) {
    LoadedLibrary none;
    none.trouble = "a program that is linked with -static or -static-pie cannot load HIP's runtime";
    return none;
  }
  if (const char* const file = environment("CISTERN_HIP_LIBRARY"); file != nullptr) {
    return loadNamed(file);
  }
  // Two runtimes in a process would not know each other's streams.
  if (LoadedLibrary loaded; openAny(loaded, "", RTLD_NOLOAD)) return loaded;
  LoadedLibrary library;
  for (const std::string& folder : folders()) {
    if (openAny(library, folder)) return library;
  }
  if (library.trouble.empty()) {
    library.trouble = fmt::format(
        "HIP's runtime is not found; looked for {} in $ROCM_PATH/lib, where the loader looks, and "
        "in "
        "/opt/rocm/lib",
        fmt::join(fileNames(), ", "));
  } else {
    library.trouble = "HIP's runtime cannot be loaded: " + library.trouble;
  }
  return library;
}

}  // namespace cistern::hip
