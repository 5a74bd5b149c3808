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

constexpr const char* kOwnDescriptors = "/proc/self/fd";

// A name that `make` could use, or an empty one and errno. It is random. A killed process may have
// left a file, and the next process may have its number. In a folder that others may write to, they
// could make a name in advance. It does not contain the other name, which may be as long as a name
// can be.
template <class Make>
std::string unusedName(Make make) {
  constexpr int kTries = 16;
  std::random_device random;
  for (int tries = 0; tries < kTries; ++tries) {
    std::string name = fmt::format(".cistern-{:08x}{:08x}.tmp", random(), random());
    if (make(name.c_str())) return name;
    if (errno != EEXIST) break;
  }
  return {};
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

// Where the file system can, the file has no name until it is whole: nothing is left of it if the
// process is killed before.
bool ReplacedFile::makeBeside(mode_t mode) {
  const int folder = folder_.number();
  if (access(kOwnDescriptors, X_OK) == 0) {
    file_ = Descriptor(openat(folder, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, mode));
    nameless_ = file_.isOpen();
    if (nameless_) return true;
  }
  beside_ = unusedName([&](const char* name) {
    file_ = Descriptor(openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    return file_.isOpen();
  });
  return file_.isOpen();
}

void ReplacedFile::nameBeside() {
  const std::string file = fmt::format("{}/{}", kOwnDescriptors, file_.number());
  beside_ = unusedName([&](const char* name) {
    return linkat(AT_FDCWD, file.c_str(), folder_.number(), name, AT_SYMLINK_FOLLOW) == 0;
  });
  if (beside_.empty()) throw Failure{"be written", errno};
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
  if (nameless_) nameBeside();
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
