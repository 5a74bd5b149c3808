#include "interop/command/replay/plot_file.hpp"

#include <utility>

#include "interop/command/writable.hpp"

namespace cistern::command {

PlotFile::PlotFile(std::string path) : path_(std::move(path)) { requireWritable("--plot", path_); }

void PlotFile::write(const std::string& text) { writeFile("--plot", path_, text); }

}  // namespace cistern::command
