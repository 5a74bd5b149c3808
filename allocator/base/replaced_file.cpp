#include "allocator/base/replaced_file.hpp"

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <random>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocator/base/own_descriptor.hpp"

namespace cistern {
namespace {

std::string_view nameIn(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Without the group, the mode's bits for it would let another group in.
void likeBefore(int file, const struct stat& before) {
  const bool whole = fchown(file, before.st_uid, before.st_gid) == 0;
  const bool group = whole || fchown(file, uid_t(-1), before.st_gid) == 0;
  (void)fchmod(file, before.st_mode & (group ? 0777 : 0707));
}

}  // namespace

std::string ReplacedFile::folderOf(std::string_view path) {
  return std::string(path.substr(0, path.rfind('/') + 1));
}

ReplacedFile::Descriptor& ReplacedFile::Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

int ReplacedFile::Descriptor::close() { return isOpen() ? ::close(std::exchange(number_, -1)) : 0; }

ReplacedFile::Descriptor ReplacedFile::orThrow(int opened, const char* what) {
  if (opened < 0) throw Failure{what, errno};
  return Descriptor(opened);
}

std::string ReplacedFile::followed(std::string path) {
  constexpr int kMostLinks = 40;  // as the kernel has it
  for (int links = 0; links < kMostLinks; ++links) {
    std::array<char, PATH_MAX> target;
    const ssize_t length = readlink(path.c_str(), target.data(), target.size());
    if (length < 0 || ownDescriptor(path)) return path;
    const std::string to(target.data(), std::size_t(length));
    path = to.front() == '/' ? to : folderOf(path) + to;
  }
  throw Failure{"be written", ELOOP};
}

// stat() follows links as the kernel allows, which refuses another user's in a folder such as /tmp.
ReplacedFile::ReplacedFile(std::string path) {
  const std::string target = followed(path);
  if (const auto own = ownDescriptor(target)) {
    file_ = orThrow(fcntl(*own, F_DUPFD_CLOEXEC, 0), "be written");
    return;
  }
  struct stat there {};
  const bool exists = stat(path.c_str(), &there) == 0;
  if (!exists && errno != ENOENT) throw Failure{"be written", errno};
  if (nameIn(path).empty() || (exists && S_ISDIR(there.st_mode)))
    throw Failure{"be written", EISDIR};
  if (exists && !S_ISREG(there.st_mode)) {
    file_ = orThrow(open(path.c_str(), O_WRONLY | O_CLOEXEC), "be written");
  } else {
    openBeside(target);
  }
}

// Not mkstemp: that makes the file private, while the umask governs the program's other files. An
// existing file's own mode tells who may read it. It is opened once, so that anything that forbids
// this process to write to it counts here too.
void ReplacedFile::openBeside(const std::string& path) {
  name_ = nameIn(path);
  const std::string folder = folderOf(path);
  folder_ = orThrow(open(folder.empty() ? "." : folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC),
                    "be begun");
  Descriptor old(openat(folder_.number(), name_.c_str(), O_WRONLY | O_CLOEXEC));
  if (!old.isOpen() && errno != ENOENT) throw Failure{"be written", errno};
  struct stat before {};
  const bool keeps = old.isOpen() && fstat(old.number(), &before) == 0;
  if (makeBeside(keeps ? 0600 : 0666)) {
    if (keeps) likeBefore(file_.number(), before);
    return;
  }
  const bool refused = errno == EACCES || errno == EPERM;  // the folder, but not the file
  if (!old.isOpen() || !refused || ftruncate(old.number(), 0) != 0)
    throw Failure{"be begun", errno};
  file_ = std::move(old);
}

// The name is random. A killed process may have left a file, and the next process may have its
// number. In a folder that others may write to, they could make a name in advance. It does not
// contain the other name, which may be as long as a name can be.
bool ReplacedFile::makeBeside(mode_t mode) {
  constexpr int kTries = 16;
  std::random_device random;
  for (int tries = 0; tries < kTries; ++tries) {
    std::string name = fmt::format(".cistern-{:08x}{:08x}.tmp", random(), random());
    constexpr int kHow = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    file_ = Descriptor(openat(folder_.number(), name.c_str(), kHow, mode));
    if (file_.isOpen()) beside_ = std::move(name);
    if (file_.isOpen() || errno != EEXIST) return file_.isOpen();
  }
  return false;
}

ReplacedFile::~ReplacedFile() {
  if (!beside_.empty()) unlinkat(folder_.number(), beside_.c_str(), 0);
}

void ReplacedFile::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(file_.number(), text.data(), text.size());
    if (wrote < 0 && errno != EINTR) throw Failure{"be written", errno};
    if (wrote > 0) text.remove_prefix(std::size_t(wrote));
  }
}

void ReplacedFile::take() {
  if (file_.close() != 0) throw Failure{"be written", errno};
  if (beside_.empty()) return;
  const int folder = folder_.number();
  if (renameat(folder, beside_.c_str(), folder, name_.c_str()) == 0) {
    beside_.clear();
  } else {
    copyOver();
  }
}

// A mount point, and in a folder such as /tmp another user's file, may be written but not replaced.
void ReplacedFile::copyOver() {
  const int why = errno;
  const Descriptor from(openat(folder_.number(), beside_.c_str(), O_RDONLY | O_CLOEXEC));
  Descriptor to(openat(folder_.number(), name_.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (!from.isOpen() || !to.isOpen()) throw Failure{"be replaced", why};
  constexpr std::size_t kAtOnce = std::size_t{1} << 30;
  ssize_t copied = 0;
  do {
    copied = sendfile(to.number(), from.number(), nullptr, kAtOnce);
  } while (copied > 0);
  if (copied < 0 || to.close() != 0) throw Failure{"be written", errno};
}

}  // namespace cistern
