#include "interop/command/writable.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "interop/command/console.hpp"

namespace cistern::command {

void requireWritable(const std::string& option, const std::string& path) {
  std::error_code unknown;
  const bool made_here = !std::filesystem::exists(std::filesystem::symlink_status(path, unknown));
  errno = 0;
  if (!std::ofstream(path, std::ios::app))
    throw UsageError(
        fmt::format("{} {}: cannot be written: {}", option, path, std::strerror(errno)));
  if (made_here) std::filesystem::remove(path, unknown);
}

}  // namespace cistern::command
