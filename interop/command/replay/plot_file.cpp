#include "interop/command/replay/plot_file.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fmt/format.h>

#include "interop/command/console.hpp"

namespace cistern::command {
namespace {

std::string refusal(const std::string& path, int why) {
  return fmt::format("--plot {}: cannot be written: {}", path, std::strerror(why));
}

bool isThere(const std::string& path) {
  std::error_code unknown;
  return std::filesystem::exists(std::filesystem::symlink_status(path, unknown));
}

}  // namespace

PlotFile::PlotFile(std::string path) : path_(std::move(path)) {
  const bool made_here = !isThere(path_);
  errno = 0;
  if (!std::ofstream(path_, std::ios::app)) throw UsageError(refusal(path_, errno));
  std::error_code ignored;
  if (made_here) std::filesystem::remove(path_, ignored);
}

void PlotFile::write(const std::string& text) {
  errno = 0;
  std::ofstream file(path_, std::ios::trunc);
  file << text << std::flush;
  if (!file) throw Error(refusal(path_, errno));
}

}  // namespace cistern::command
