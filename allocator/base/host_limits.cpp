#include "allocator/base/host_limits.hpp"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <fstream>
#include <optional>

#include <unistd.h>

#include "allocator/base/bytes.hpp"

namespace cistern {
namespace {

using Bytes = std::optional<std::uint64_t>;

// The one number that a file holds; none for "max", or without such a file.
Bytes numberIn(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  return file >> number ? Bytes(number) : std::nullopt;
}

// "MemAvailable:   12345 kB". A process that is short of file descriptors is not to take the host's
// last memory: nothing is available to it.
Bytes available(const std::string& root) {
  errno = 0;
  std::ifstream file(root + "/proc/meminfo");
  if (!file.is_open() && errno != ENOENT) return 0;
  std::string name, unit;
  std::uint64_t kilobytes = 0;
  while (file >> name >> kilobytes) {
    std::getline(file, unit);
    if (name == "MemAvailable:") return kilobytes * 1024;
  }
  return std::nullopt;
}

/// The files of a group, as a version of control groups names them.
struct GroupFiles {
  const char *limit, *used;
  const char *inactive, *active;  ///< in memory.stat: pages of files, with those of groups within
};

// A group's use counts the pages of files that it has read or written. The kernel takes these back
// before the group is out of memory, and calls as much of the host's available.
std::uint64_t pagesOfFiles(const std::string& group, const GroupFiles& files) {
  std::ifstream file(group + "/memory.stat");
  std::uint64_t bytes = 0, number = 0;
  for (std::string name; file >> name >> number;) {
    if (name == files.inactive || name == files.active) bytes += number;
  }
  return bytes;
}

Bytes leftOf(const std::string& group, const GroupFiles& files) {
  const Bytes most = numberIn(group + files.limit), now = numberIn(group + files.used);
  if (!most || !now) return std::nullopt;
  const std::uint64_t fixed = *now - std::min(*now, pagesOfFiles(group, files));
  return *most > fixed ? *most - fixed : 0;
}

// The group, and all groups that it is in, as "/a/b" names it.
Bytes leftAlong(const std::string& top, std::string group, const GroupFiles& files) {
  Bytes least;
  while (true) {
    if (group == "/") group.clear();
    if (const Bytes left = leftOf(top + group, files))
      least = std::min(*left, least.value_or(*left));
    if (group.empty()) return least;
    group.resize(group.rfind('/'));
  }
}

// A line is "0::/a/b" of version 2, or "7:memory:/a/b" of version 1.
Bytes leftOfGroups(const std::string& root, const std::string& process) {
  constexpr GroupFiles kSecond = {"/memory.max", "/memory.current", "inactive_file", "active_file"};
  constexpr GroupFiles kFirst = {"/memory.limit_in_bytes", "/memory.usage_in_bytes",
                                 "total_inactive_file", "total_active_file"};
  std::ifstream file(root + "/proc/" + process + "/cgroup");
  Bytes least;
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos || second + 1 >= line.size() || line[second + 1] != '/')
      continue;
    const std::string kinds = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    Bytes left;
    if (kinds.empty()) {
      left = leftAlong(root + "/sys/fs/cgroup", group, kSecond);
    } else if (("," + kinds + ",").find(",memory,") != std::string::npos) {
      left = leftAlong(root + "/sys/fs/cgroup/memory", group, kFirst);
    }
    if (left) least = std::min(*left, least.value_or(*left));
  }
  return least;
}

}  // namespace

std::uint64_t hostBytesLeft(const std::string& root, const std::string& process) {
  const Bytes host = available(root), groups = leftOfGroups(root, process);
  return std::min(host.value_or(UINT64_MAX), groups.value_or(UINT64_MAX));
}

std::uint64_t hostBytesLeft() noexcept try {
  return hostBytesLeft(std::string(), "self");
} catch (const std::exception&) {  // no memory to read them: then none is left
  return 0;
}

std::uint64_t hostBytesLeftForPages() noexcept {
  constexpr std::uint64_t kForOthers = 512 * kMiB;
  const std::uint64_t left = hostBytesLeft();
  if (left == UINT64_MAX) return left;
  return left > kForOthers ? left - kForOthers : 0;
}

std::uint64_t residentBytes() noexcept try {
  std::ifstream file("/proc/self/statm");
  std::uint64_t all = 0, resident = 0;
  if (!(file >> all >> resident)) return 0;
  return resident * std::uint64_t(::sysconf(_SC_PAGESIZE));
} catch (const std::exception&) {
  return 0;
}

}  // namespace cistern
