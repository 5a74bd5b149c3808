#include "interop/command/replay/read_scripts.hpp"

#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "allocator/base/printable.hpp"
#include "interop/recording/read_recording.hpp"

namespace cistern::command {
namespace {

void readFile(std::vector<Script>& scripts, const std::string& path, const ReplaySettings& s,
              Console& console) {
  recording::FileContents read = recording::readCalls(path, s.read_limits, s.gpu);
  std::vector<std::string> gpus;
  for (recording::Recording& each : read.recordings) {
    const recording::Recording recording = std::exchange(each, {});  // gone before the next script
    gpus.push_back(recording.device);
    scripts.push_back(makeScript(recording));
    scripts.back().file = path;
  }
  for (const std::string& what : read.left_out)
    console.err << fmt::format("cistern: {}: {}\n", printable(path), what);
  if (s.plot.empty() || gpus.size() == 1) return;
  throw UsageError(fmt::format("--plot draws one program, and {} records {}: choose one by --gpu N",
                               path, fmt::join(gpus, ", ")));
}

void tellApart(std::vector<Script>& scripts) {
  std::map<std::string_view, std::set<std::string_view>> files;
  for (const Script& script : scripts) files[script.name].insert(script.file);
  for (Script& script : scripts) script.shares_name = files[script.name].size() > 1;
}

}  // namespace

std::vector<Script> readScripts(const ReplaySettings& s, Progress& progress, Console& console) {
  std::vector<Script> scripts;
  for (const std::string& path : s.traces) {
    progress.show(0, "reading " + path);
    readFile(scripts, path, s, console);
    progress.clear();
  }
  tellApart(scripts);
  return scripts;
}

}  // namespace cistern::command
