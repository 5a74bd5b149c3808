#include "allocator/base/replaced_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cistern {

bool ReplacedFile::canReplace(const std::string& path) {
  struct stat there {};
  return stat(path.c_str(), &there) != 0 || S_ISREG(there.st_mode);
}

// Not mkstemp: that makes the file private, while the umask governs the program's other files. An
// existing file's own mode tells who may read it. It is opened once, so that anything that forbids
// this process to write to it counts here too. Examples are its mode, and another user's link in a
// folder such as /tmp.
ReplacedFile::ReplacedFile(std::string path) : path_(std::move(path)) {
  struct stat there {};
  const int old = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  if (old < 0 && errno != ENOENT) throw Failure{"be written", errno};
  const bool keeps = old >= 0 && fstat(old, &there) == 0;
  if (old >= 0) close(old);
  if (char* const real = realpath(path_.c_str(), nullptr)) {
    path_ = real;
    std::free(real);
  }
  open(keeps ? 0600 : 0666);
  if (keeps) (void)fchmod(file_, there.st_mode & 0777);
}

// The name is random. A killed process may have left a file, and the next process may have its
// number. In a folder that others may write to, they could make a name in advance.
void ReplacedFile::open(mode_t mode) {
  constexpr int kTries = 16;
  std::random_device random;
  for (int tries = 0; tries < kTries && !made_; ++tries) {
    beside_ = fmt::format("{}.{:08x}{:08x}.tmp", path_, random(), random());
    file_ = ::open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    made_ = file_ >= 0;
    if (!made_ && errno != EEXIST) break;
  }
  if (!made_) throw Failure{"be begun", errno};
}

ReplacedFile::~ReplacedFile() {
  if (file_ >= 0) close(file_);
  if (made_) unlink(beside_.c_str());
}

void ReplacedFile::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(file_, text.data(), text.size());
    if (wrote < 0 && errno != EINTR) throw Failure{"be written", errno};
    if (wrote > 0) text.remove_prefix(std::size_t(wrote));
  }
}

void ReplacedFile::take() {
  if (close(std::exchange(file_, -1)) != 0) throw Failure{"be written", errno};
  if (std::rename(beside_.c_str(), path_.c_str()) != 0) throw Failure{"be replaced", errno};
  made_ = false;
}

}  // namespace cistern
