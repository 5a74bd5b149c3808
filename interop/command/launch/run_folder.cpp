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
#include "interop/command/launch/records.hpp"
#include "interop/preload/process/identity.hpp"

namespace cistern::command {
namespace {

constexpr const char* kPrefix = "cistern-run-";

std::filesystem::path place() { return std::filesystem::temp_directory_path(); }

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

void removeThoseOfKilledRuns() {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(place(), none)) {
    if (entry.path().filename().string().rfind(kPrefix, 0) != 0) continue;
    bool others = false;
    const int lock = lockOwn(entry.path(), others);
    if (lock < 0) continue;
    removeUnlessInUse(entry.path());
    close(lock);
  }
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
  // As the program finds it, wherever it goes.
  std::string pattern =
      std::filesystem::absolute(place() / (std::string(kPrefix) + "XXXXXX")).string();
  if (mkdtemp(pattern.data()) == nullptr)
    throw Error(fmt::format("{}: {}", pattern, std::strerror(errno)));
  bool others = false;
  lock_ = lockOwn(pattern, others);
  path_ = pattern;
  if (!others && std::filesystem::exists(path_)) return true;
  if (lock_ >= 0) close(lock_);
  return false;
}

}  // namespace cistern::command
