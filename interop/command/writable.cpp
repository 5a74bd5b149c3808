#include "interop/command/writable.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocator/base/own_descriptor.hpp"
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

namespace {

constexpr int kMostLinks = 40;  // as many as Linux follows

bool isOneInode(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/// The whole name of a file that need not exist. A link to a file that is missing is followed too:
/// a write makes that file.
std::filesystem::path wholeName(std::filesystem::path path) {
  std::error_code none;
  for (int links = 0; links < kMostLinks; ++links) {
    path = std::filesystem::weakly_canonical(std::filesystem::absolute(path, none), none);
    const std::filesystem::path target = std::filesystem::read_symlink(path, none);
    if (none || target.empty()) break;
    path = path.parent_path() / target;
  }
  return path;
}

/// Whether the stream writes to that file by another opening of it, and the file is one that keeps
/// what is written. Output to /dev/stdout comes in order.
bool isStream(int stream, const std::string& path) {
  if (ownDescriptor(path)) return false;
  struct stat open {
  }, there{};
  return fstat(stream, &open) == 0 && S_ISREG(open.st_mode) && stat(path.c_str(), &there) == 0 &&
         isOneInode(open, there);
}

[[noreturn]] void refuseOne(const NamedFile& output, const std::string& other) {
  throw UsageError(fmt::format("{} and {} would both write {}", other, output.said, output.path));
}

}  // namespace

bool sameFile(const std::string& a, const std::string& b) {
  struct stat one {
  }, other{};
  const bool both = stat(a.c_str(), &one) == 0 && stat(b.c_str(), &other) == 0;
  // Any number of outputs may go to a pipe or a terminal.
  if (both) return S_ISREG(one.st_mode) && isOneInode(one, other);
  return wholeName(a) == wholeName(b);
}

void requireApart(std::span<const NamedFile> outputs, std::span<const NamedFile> inputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const NamedFile& output = outputs[i];
    if (output.path.empty()) continue;
    for (const NamedFile& earlier : outputs.first(i)) {
      if (!earlier.path.empty() && sameFile(earlier.path, output.path))
        refuseOne(output, earlier.said);
    }
    for (const NamedFile& input : inputs) {
      if (!sameFile(input.path, output.path)) continue;
      throw UsageError(fmt::format("{} {} would overwrite {} {}", output.said, output.path,
                                   input.said, input.path));
    }
    for (const auto& [stream, name] : {std::pair{STDOUT_FILENO, "the standard output"},
                                       std::pair{STDERR_FILENO, "the standard error"}}) {
      if (isStream(stream, output.path)) refuseOne(output, name);
    }
  }
}

}  // namespace cistern::command
