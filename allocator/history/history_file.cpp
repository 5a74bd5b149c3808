#include "allocator/history/history_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocator/base/mutex.hpp"
#include "allocator/base/unsignalled_thread.hpp"
#include "cistern/error.hpp"

namespace cistern {
namespace {

/// The most events that are taken at once.
constexpr std::size_t kPart = std::size_t{1} << 16;

}  // namespace

/// The files of the process that have not ended: they do when it exits.
struct HistoryFile::All {
  Mutex mutex{LockRank::kHistoryFiles};
  std::vector<HistoryFile*> files CISTERN_GUARDED_BY(mutex);

  All() {
    (void)std::atexit([] { processWide<All>().finish(); });
  }
  void finish() noexcept {
    const MutexLock lock(mutex);
    for (HistoryFile* const file : files) {
      const std::string failure = file->finish();
      if (!failure.empty()) std::fprintf(stderr, "cistern: %s\n", failure.c_str());
    }
    files.clear();
  }
  void remove(HistoryFile* file) noexcept {
    const MutexLock lock(mutex);
    std::erase(files, file);
  }
};

HistoryFile::HistoryFile(History& history, std::shared_ptr<const HistoryNames> names)
    : history_(history), names_(std::move(names)), text_(names_) {
  const std::string& path = names_->settings.file;
  All& all = processWide<All>();
  {
    const MutexLock lock(all.mutex);
    all.files.reserve(all.files.size() + 1);
  }
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0)
    throw HistoryError(
        fmt::format("the history cannot be written to {}: {}", path, std::strerror(errno)));
  requireAlone();
  try {
    const HistoryPart whole = history_.whole();
    text_.begin(startOf(whole), whole.pools, false);
    write(text_.take());
    thread_ = unsignalledThread([this] { run(); });
  } catch (const std::exception& error) {
    (void)::close(file_);
    throw HistoryError(fmt::format("the history in {} cannot be begun: {}", path, error.what()));
  }
  const MutexLock lock(all.mutex);
  all.files.push_back(this);
}

// The file's contents stay, if another history writes it. A device or a pipe cannot be cut.
void HistoryFile::requireAlone() {
  if (::flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    (void)::close(file_);
    throw HistoryError(
        fmt::format("the history cannot be written to {}: another one is written there",
                    names_->settings.file));
  }
  (void)!::ftruncate(file_, 0);
}

// Its path may be out of reach by now, as in a chroot.
bool HistoryFile::hasName() const {
  struct stat now {};
  return ::fstat(file_, &now) != 0 || now.st_nlink != 0;
}

HistoryFile::~HistoryFile() {
  if (made_.isHere()) processWide<All>().remove(this);
  (void)finish();
  if (!made_.isHere()) new (&thread_) std::thread;  // a child of fork has no such thread
}

std::string HistoryFile::finish() noexcept try {
  if (!made_.isHere() || !thread_.joinable()) return {};
  history_.endTaking();
  thread_.join();
  if (failure_.empty() && !hasName())
    failure_ = "it was removed, or another file was put in its place";
  (void)::flock(file_, LOCK_UN);  // a child of fork may still have it open
  (void)::close(file_);
  return failure_.empty()
             ? ""
             : fmt::format("the history in {} is not whole: {}", names_->settings.file, failure_);
} catch (const std::exception& error) {
  return error.what();
}

// When the host is short of memory, or a frame cannot be named, the file ends with what it has.
void HistoryFile::run() noexcept try {
  bool more = true;
  while (more) {
    more = history_.awaitEvents();
    writeNew();
  }
} catch (const std::exception& error) {
  if (failure_.empty()) failure_ = error.what();
}

void HistoryFile::writeNew() {
  for (bool all = false; !all;) {
    const HistoryPart part = history_.take(kPart);
    all = part.events.size() < kPart;
    text_.add(part);
    write(text_.take());
  }
}

// A line that could be written in part only is taken back.
void HistoryFile::write(const std::string& text) {
  std::size_t done = 0;
  while (failure_.empty() && done < text.size()) {
    const ssize_t wrote = ::write(file_, text.data() + done, text.size() - done);
    if (wrote > 0) done += std::size_t(wrote);
    if (wrote >= 0 || errno == EINTR) continue;
    failure_ = std::strerror(errno);
    const std::size_t whole = done == 0 ? 0 : text.rfind('\n', done - 1) + 1;
    const off_t end = ::lseek(file_, 0, SEEK_CUR);
    if (end >= 0) (void)!::ftruncate(file_, end - off_t(done - whole));
  }
}

}  // namespace cistern
