#include "interop/command/replay/plot_file.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include <fmt/format.h>

#include "interop/command/console.hpp"
#include "interop/command/writable.hpp"

namespace cistern::command {
namespace {

std::string refusal(const std::string& path, int why) {
  return fmt::format("--plot {}: cannot be written: {}", path, std::strerror(why));
}

}  // namespace

PlotFile::PlotFile(std::string path) : path_(std::move(path)) { requireWritable("--plot", path_); }

void PlotFile::write(const std::string& text) {
  errno = 0;
  std::ofstream file(path_, std::ios::trunc);
  file << text << std::flush;
  if (!file) throw Error(refusal(path_, errno));
}

}  // namespace cistern::command
