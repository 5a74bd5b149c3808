// Which process this is. Processes in several PID namespaces may have the same number.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cistern::preload {

/// Identifies a process: the same as long as it lives, through exec too, and different from all
/// others. Without /proc, the number alone identifies it.
struct Identity {
  std::int64_t pid = 0;
  std::uint64_t pid_namespace = 0;  ///< its inode; 0: not known
  std::uint64_t started = 0;        ///< in ticks since the start of the machine; 0: not known
  bool operator==(const Identity&) const = default;
};

inline std::uint64_t pidNamespace() noexcept {
  struct stat facts {};
  return stat("/proc/self/ns/pid", &facts) == 0 ? facts.st_ino : 0;
}

/// Whether two that were asked for are one. One that is not known may be any.
inline bool sameNamespace(std::uint64_t a, std::uint64_t b) noexcept {
  return a == b || a == 0 || b == 0;
}

// The name of the program, in parentheses, may have any characters. Nineteen numbers lie between it
// and the time.
inline std::uint64_t startOfProcess() noexcept {
  char text[1024] = "";
  const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t got = read(file, text, sizeof text - 1);
  close(file);
  const char* const name_ends = got > 0 ? std::strrchr(text, ')') : nullptr;
  unsigned long long started = 0;
  constexpr char kFields[] =
      ") %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu";
  return name_ends != nullptr && std::sscanf(name_ends, kFields, &started) == 1 ? started : 0;
}

inline Identity thisProcess() noexcept { return {getpid(), pidNamespace(), startOfProcess()}; }

}  // namespace cistern::preload
