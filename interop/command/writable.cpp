#include "interop/command/writable.hpp"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocator/base/replaced_file.hpp"
#include "interop/command/console.hpp"

namespace cistern::command {
namespace {

int refusalOf(const std::string& path, int how) {
  return access(path.c_str(), how) == 0 ? 0 : errno;
}

/// A folder that was removed may still be a process's current one, and has no name then.
int whyNoNewFile(const std::string& folder) {
  struct stat there {};
  if (stat(folder.c_str(), &there) != 0) return errno;
  return there.st_nlink == 0 ? ENOENT : refusalOf(folder, W_OK | X_OK);
}

/// 0, or the errno that a write would meet. No file is made to find out: who is killed then would
/// leave an empty one.
int whyNotWritable(const std::string& path) try {
  struct stat there {};
  if (stat(path.c_str(), &there) == 0)
    return S_ISDIR(there.st_mode) ? EISDIR : refusalOf(path, W_OK);
  if (errno != ENOENT) return errno;
  const std::string folder = ReplacedFile::folderOf(ReplacedFile::followed(path));
  return whyNoNewFile(folder.empty() ? "." : folder);
} catch (const ReplacedFile::Failure& failure) {
  return failure.why;
}

std::string refusal(const std::string& option, const std::string& path, int why) {
  return fmt::format("{} {}: cannot be written: {}", option, path, std::strerror(why));
}

}  // namespace

void requireWritable(const std::string& option, const std::string& path) {
  const int why = whyNotWritable(path);
  if (why != 0) throw UsageError(refusal(option, path, why));
}

void writeFile(const std::string& option, const std::string& path, const std::string& text) try {
  ReplacedFile file(path);
  file.write(text);
  file.take();
} catch (const ReplacedFile::Failure& failure) {
  throw Error(refusal(option, path, failure.why));
}

}  // namespace cistern::command
