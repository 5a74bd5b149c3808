#include "interop/command/launch/paths.hpp"

#include <system_error>

#include <fmt/format.h>

#include "cistern/error.hpp"

namespace cistern::command {

std::filesystem::path absolutePath(const std::filesystem::path& path) {
  std::error_code failed;
  std::filesystem::path whole = std::filesystem::absolute(path, failed);
  if (!failed) return whole;
  throw Error(fmt::format("{} is relative, and the current folder is not to be found: {}",
                          path.string(), failed.message()));
}

// A range-based loop would throw from its increment.
std::vector<std::filesystem::path> entriesOf(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> entries;
  std::error_code failed;
  std::filesystem::directory_iterator entry(folder, failed);
  for (; !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
    entries.push_back(entry->path());
  }
  if (failed) throw Error(fmt::format("{} cannot be read: {}", folder.string(), failed.message()));
  return entries;
}

}  // namespace cistern::command
