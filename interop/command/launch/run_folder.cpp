#include "interop/command/launch/run_folder.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cistern/error.hpp"
#include "interop/command/launch/paths.hpp"
#include "interop/command/launch/records.hpp"
#include "interop/preload/process/identity.hpp"

namespace cistern::command {
namespace {

constexpr const char* kPrefix = "cistern-run-";

// The variables that std::filesystem looks at, in its order.
std::string nameOfPlace() {
  for (const char* const name : {"TMPDIR", "TMP", "TEMP", "TEMPDIR"}) {
    if (const char* const value = std::getenv(name)) return fmt::format("{} ({})", value, name);
  }
  return "/tmp";
}

// As the program finds it, wherever it goes.
std::filesystem::path place() {
  std::error_code failed;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(failed);
  if (failed) {
    throw Error(fmt::format("{} cannot take temporary files: {}", nameOfPlace(), failed.message()));
  }
  return absolutePath(folder);
}

/// A folder of this user's, open and locked. -1: it cannot be; `others`, if that is because another
/// process has the lock.
int lockOwn(const std::filesystem::path& path, bool& others) {
  others = false;
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return -1;
  struct stat facts {};
  const bool own = fstat(folder, &facts) == 0 && facts.st_uid == geteuid();
  if (own && flock(folder, LOCK_EX | LOCK_NB) == 0) return folder;
  others = own && errno == EWOULDBLOCK;
  close(folder);
  return -1;
}

// The program may go on where only `cistern run` was killed. Another PID namespace's numbers say
// nothing here.
bool isAlive(const preload::Identity& process) {
  if (!preload::sameNamespace(process.pid_namespace, preload::pidNamespace())) return false;
  return kill(pid_t(process.pid), 0) == 0 || errno == EPERM;
}

bool isInUse(const std::filesystem::path& folder) {
  const std::vector<Account> accounts = readRecords(folder, 0);
  return std::any_of(accounts.begin(), accounts.end(),
                     [](const Account& account) { return isAlive(account.process); });
}

void removeUnlessInUse(const std::filesystem::path& folder) noexcept try {
  std::error_code none;
  if (!isInUse(folder)) std::filesystem::remove_all(folder, none);
} catch (const std::exception&) {
  // It is the next run's.
}

void removeThoseOfKilledRuns() try {
  for (const std::filesystem::path& entry : entriesOf(place())) {
    if (entry.filename().string().rfind(kPrefix, 0) != 0) continue;
    bool others = false;
    const int lock = lockOwn(entry, others);
    if (lock < 0) continue;
    removeUnlessInUse(entry);
    close(lock);
  }
} catch (const Error&) {
  // A folder that may be written but not read serves this run.
}

}  // namespace

RunFolder::RunFolder() {
  removeThoseOfKilledRuns();
  while (!make()) {
  }
}

RunFolder::~RunFolder() {
  std::error_code none;
  std::filesystem::remove_all(path_, none);
  if (lock_ >= 0) close(lock_);
}

// False: another run took the folder for an abandoned one before it was locked. If folders cannot
// be locked, nobody takes one.
bool RunFolder::make() {
  std::string pattern = (place() / (std::string(kPrefix) + "XXXXXX")).string();
  if (mkdtemp(pattern.data()) == nullptr)
    throw Error(fmt::format("{}: {}", pattern, std::strerror(errno)));
  bool others = false;
  lock_ = lockOwn(pattern, others);
  path_ = pattern;
  std::error_code none;
  if (!others && std::filesystem::exists(path_, none)) return true;
  if (lock_ >= 0) close(lock_);
  return false;
}

}  // namespace cistern::command
