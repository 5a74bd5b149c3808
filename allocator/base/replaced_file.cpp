#include "allocator/base/replaced_file.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
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

// Not mkstemp: that makes it private, where the program's other files are as its umask says.
ReplacedFile::ReplacedFile(std::string path) : path_(std::move(path)) {
  if (char* const real = realpath(path_.c_str(), nullptr)) {
    path_ = real;
    std::free(real);
  }
  static std::atomic<unsigned> made_so_far{0};
  beside_ = fmt::format("{}.{}.{}.tmp", path_, getpid(), made_so_far.fetch_add(1));
  file_ = open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file_ < 0) throw Failure{"be begun", errno};
  made_ = true;
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
