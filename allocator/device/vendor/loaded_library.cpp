#include "allocator/device/vendor/loaded_library.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "allocator/device/vendor/library_file.hpp"

namespace cistern {
namespace {

/// Whether the program names no loader, as -static and -static-pie link it. glibc's dlopen exists
/// all the same, and crashes on a library that exists.
bool linkedStatically() {
  const auto* const first = reinterpret_cast<const ElfW(Phdr)*>(getauxval(AT_PHDR));
  const auto isLoader = [](const ElfW(Phdr) & header) { return header.p_type == PT_INTERP; };
  return first != nullptr && std::none_of(first, first + getauxval(AT_PHNUM), isLoader);
}

std::string fileOf(void* handle, const std::string& opened) {
  const link_map* map = nullptr;
  const bool known = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr;
  return known && *map->l_name != 0 ? map->l_name : opened;
}

/// The loader's message about a file that exists; empty for one that does not.
std::string loadersMessage(const std::string& file) {
  const char* const said = dlerror();
  const std::string absent = file + ": cannot open shared object file: No such file or directory";
  return said != nullptr && said != absent ? said : "";
}

/// Sets the handle, or returns why the file cannot serve: empty if there is no such file.
std::string openFile(LoadedLibrary& library, const LibrarySearch& search, const std::string& file,
                     int mode) {
  if (mode != RTLD_NOLOAD) {
    if (std::string why = fileRefusal(file); !why.empty()) return why;
  }
  library.handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | mode);
  if (library.handle == nullptr) return loadersMessage(file);
  library.file = fileOf(library.handle, file);
  const std::string why = search.refusal(library.handle);
  if (why.empty()) return {};
  dlclose(library.handle);
  library.handle = nullptr;
  return library.file + " " + why;
}

/// Post: without a handle, `trouble` is about the first existing file.
bool open(LoadedLibrary& library, const LibrarySearch& search, const std::string& file,
          int mode = 0) {
  const std::string why = openFile(library, search, file, mode);
  if (library.handle != nullptr) return true;
  if (library.trouble.empty()) library.trouble = why;
  return false;
}

LoadedLibrary loadNamed(const LibrarySearch& search, const char* file) {
  LoadedLibrary library;
  if (open(library, search, file)) return library;
  const bool is_path = std::string_view(file).find('/') != std::string_view::npos;
  const char* const none =
      is_path ? "there is no such file"
              : "there is no such file where the loader looks, which is where a name without a "
                "slash is looked for; one of this folder needs ./ before it";
  const std::string why = library.trouble.empty() ? none : library.trouble;
  library.trouble = fmt::format("{} is {}, which cannot be loaded: {}", search.variable, file, why);
  return library;
}

/// The files of such libraries in this process, in the order in which they were loaded. By their
/// paths: a wheel may have renamed its copy (libcudart-d0da41ae.so.12).
std::vector<std::string> filesInProcess(const std::string& stem) {
  struct Files {
    std::string_view stem;
    std::vector<std::string> found;
  } files{stem, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* into) {
        auto& all = *static_cast<Files*>(into);
        const std::string_view path(info->dlpi_name);
        if (path.substr(path.rfind('/') + 1).starts_with(all.stem)) all.found.emplace_back(path);
        return 0;
      },
      &files);
  return files.found;
}

LoadedLibrary searchFolders(const LibrarySearch& search) {
  LoadedLibrary library;
  for (const std::string& folder : search.folders) {
    for (const std::string& name : search.names) {
      if (open(library, search, folder + name)) return library;
    }
  }
  if (library.trouble.empty()) {
    library.trouble = fmt::format("{} is not found; looked for {} in {}", search.what,
                                  fmt::join(search.names, ", "), search.places);
  } else {
    library.trouble = search.what + " cannot be loaded: " + library.trouble;
  }
  return library;
}

}  // namespace

LoadedLibrary loadLibrary(const LibrarySearch& search) {
  if (linkedStatically()) {
    LoadedLibrary none;
    none.trouble =
        "a program that is linked with -static or -static-pie cannot load " + search.what;
    return none;
  }
  if (const char* const file = trustedVariable(search.variable); file != nullptr) {
    return loadNamed(search, file);
  }
  const std::vector<std::string> files = filesInProcess(search.stem);
  if (files.empty()) return searchFolders(search);
  // Two runtimes in a process would not know each other's streams.
  LoadedLibrary library;
  for (const std::string& file : files) {
    if (open(library, search, file, RTLD_NOLOAD)) return library;
  }
  library.trouble =
      search.what + " that this process has loaded cannot be used: " + library.trouble;
  return library;
}

const char* trustedVariable(const char* name) {
  const char* const value = secure_getenv(name);
  return value != nullptr && *value != 0 ? value : nullptr;
}

std::string ownFolder() {
  static const char inThisFile = 0;
  Dl_info info{};
  link_map* map = nullptr;
  if (dladdr1(&inThisFile, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) return {};
  std::string file(map->l_name);
  if (file.empty()) {  // the program: the loader knows it by the caller's words alone
    std::array<char, 4096> path{};
    const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
    file.assign(path.data(), std::size_t(std::max<ssize_t>(length, 0)));
  }
  return file.starts_with('/') ? file.substr(0, file.rfind('/')) : "";
}

}  // namespace cistern
