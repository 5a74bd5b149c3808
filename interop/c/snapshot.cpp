// The picture of an allocator, in a file.
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocator/base/printable.hpp"
#include "cistern/statistics.hpp"
#include "interop/c/objects.hpp"

using namespace cistern;
using namespace cistern::capi;

namespace cistern::capi {
namespace {

/// A file beside the one that it is to replace, so that a rename can do it in one step; gone with
/// this unless it has.
class Replacement {
 public:
  explicit Replacement(const char* path) : path_(path) {
    // Not mkstemp: that makes it private, where the program's other files are as its umask says.
    followLink();
    static std::atomic<unsigned> made_so_far{0};
    beside_ = fmt::format("{}.{}.{}.tmp", path_, getpid(), made_so_far.fetch_add(1));
    file_ = open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file_ < 0) refuse("be begun");
    made_ = true;
  }
  ~Replacement() {
    if (file_ >= 0) close(file_);
    if (made_) unlink(beside_.c_str());
  }
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  void write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t wrote = ::write(file_, text.data(), text.size());
      if (wrote < 0 && errno != EINTR) refuse("be written");
      if (wrote > 0) text.remove_prefix(std::size_t(wrote));
    }
  }
  void take() {
    const int file = std::exchange(file_, -1);
    if (close(file) != 0) refuse("be written");
    if (rename(beside_.c_str(), path_.c_str()) != 0) refuse("be replaced");
    made_ = false;
  }

 private:
  // What a link names is replaced, not the link. A device or a pipe is not a file that could be.
  void followLink() {
    if (char* const real = realpath(path_.c_str(), nullptr)) {
      path_ = real;
      std::free(real);
    }
    struct stat there {};
    if (stat(path_.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
      throw Failure(CISTERN_IO_ERROR,
                    fmt::format("the snapshot {} cannot be written: that is no file of data",
                                printable(path_)));
    }
  }
  [[noreturn]] void refuse(const char* what) const {
    const int why = errno;
    throw Failure(CISTERN_IO_ERROR, fmt::format("the snapshot {} cannot {}: {}", printable(path_),
                                                what, std::strerror(why)));
  }

  std::string path_;
  std::string beside_;
  int file_ = -1;
  bool made_ = false;
};

}  // namespace
}  // namespace cistern::capi

cistern_status_t cistern_snapshot(cistern_allocator_t allocator, const char* path) {
  return guarded([&] {
    requireGiven(path, "path");
    if (*path == 0) throw Failure(CISTERN_INVALID_ARGUMENT, "the argument path is empty");
    const std::string text =
        snapshotJson(Use<AllocatorObject>(wordOf(allocator))->allocator->snapshot());
    Replacement file(path);
    file.write(text);
    file.take();
  });
}
