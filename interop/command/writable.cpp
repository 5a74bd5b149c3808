#include "interop/command/writable.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interop/command/console.hpp"

namespace cistern::command {
namespace {

int refusalOf(const std::string& path, int how) {
  return access(path.c_str(), how) == 0 ? 0 : errno;
}

/// 0, or the errno that a write would meet. No file is made to find out: who is killed then would
/// leave an empty one.
int whyNotWritable(const std::string& path) {
  struct stat there {};
  if (stat(path.c_str(), &there) == 0)
    return S_ISDIR(there.st_mode) ? EISDIR : refusalOf(path, W_OK);
  if (errno != ENOENT) return errno;
  std::error_code unknown;
  const auto whole = std::filesystem::weakly_canonical(std::filesystem::absolute(path), unknown);
  return refusalOf(whole.parent_path().string(), W_OK | X_OK);
}

}  // namespace

void requireWritable(const std::string& option, const std::string& path) {
  const int why = whyNotWritable(path);
  if (why != 0)
    throw UsageError(fmt::format("{} {}: cannot be written: {}", option, path, std::strerror(why)));
}

}  // namespace cistern::command
