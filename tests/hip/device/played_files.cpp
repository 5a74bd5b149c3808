// The functions of the C library that the runtime opens the driver's files with. Each of them looks
// whether the file is one that is played, and calls the next library's otherwise.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/ioctl.h>

#include "tests/hip/device/process.hpp"
#include "tests/hip/device/topology.hpp"

#define PLAYED extern "C" [[gnu::visibility("default")]]

namespace played {
namespace {

template <class Function>
Function* nextOf(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

constexpr std::string_view kRenderNode = "/dev/dri/renderD";

bool isTopology(const char* path) {
  return path != nullptr && std::string_view(path).starts_with(kTopology);
}

/// A descriptor if the file is played, or -1.
int openPlayed(const char* path) {
  const std::string_view name = path == nullptr ? "" : path;
  if (name == "/dev/kfd") return openDriver();
  if (name.starts_with(kRenderNode)) return openRenderNode(std::atoi(path + kRenderNode.size()));
  return -1;
}

// A folder that is played is a list of names.
struct Folder {
  std::vector<std::string> names;
  std::size_t next = 0;
  dirent entry{};
};

std::mutex folders_mutex;
std::set<Folder*> folders;

DIR* openFolder(const char* path) {
  auto names = topologyFolder(path);
  if (!names) return nullptr;
  auto* folder = new Folder{std::move(*names), 0, {}};
  const std::lock_guard lock(folders_mutex);
  folders.insert(folder);
  return reinterpret_cast<DIR*>(folder);
}

/// Null if it is a real folder.
Folder* folderOf(DIR* directory) {
  auto* folder = reinterpret_cast<Folder*>(directory);
  const std::lock_guard lock(folders_mutex);
  return folders.contains(folder) ? folder : nullptr;
}

dirent* nextIn(Folder& folder) {
  if (folder.next == folder.names.size()) return nullptr;
  folder.entry.d_type = DT_DIR;
  (void)std::snprintf(folder.entry.d_name, sizeof(folder.entry.d_name), "%s",
                      folder.names[folder.next++].c_str());
  return &folder.entry;
}

FILE* openText(const char* path) {
  const std::string* text = topologyFile(path);
  if (text == nullptr) return nullptr;
  return fmemopen(const_cast<char*>(text->data()), text->size(), "r");
}

}  // namespace
}  // namespace played

// The names with 64 are the same functions where offsets have 64 bits.
PLAYED int open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & (O_CREAT | O_TMPFILE)) != 0) {
    std::va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
  }
  const int opened = played::openPlayed(path);
  if (opened >= 0) return opened;
  static auto* const next = played::nextOf<int(const char*, int, ...)>("open");
  return next(path, flags, mode);
}
PLAYED int open64(const char*, int, ...) __attribute__((alias("open")));

PLAYED FILE* fopen(const char* path, const char* mode) {
  if (played::isTopology(path)) return played::openText(path);
  static auto* const next = played::nextOf<FILE*(const char*, const char*)>("fopen");
  return next(path, mode);
}
PLAYED FILE* fopen64(const char*, const char*) __attribute__((alias("fopen")));

PLAYED DIR* opendir(const char* path) {
  if (played::isTopology(path)) return played::openFolder(path);
  static auto* const next = played::nextOf<DIR*(const char*)>("opendir");
  return next(path);
}

PLAYED dirent* readdir(DIR* directory) {
  if (played::Folder* const folder = played::folderOf(directory)) return played::nextIn(*folder);
  static auto* const next = played::nextOf<dirent*(DIR*)>("readdir");
  return next(directory);
}

PLAYED int closedir(DIR* directory) {
  if (played::Folder* const folder = played::folderOf(directory)) {
    const std::lock_guard lock(played::folders_mutex);
    played::folders.erase(folder);
    delete folder;
    return 0;
  }
  static auto* const next = played::nextOf<int(DIR*)>("closedir");
  return next(directory);
}

PLAYED int ioctl(int descriptor, unsigned long request, ...) {
  std::va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  if (_IOC_TYPE(request) == 'K' && _IOC_DIR(request) != _IOC_NONE && played::isDriver(descriptor))
    return played::callDriver(request, argument);
  static auto* const next = played::nextOf<int(int, unsigned long, ...)>("ioctl");
  return next(descriptor, request, argument);
}
