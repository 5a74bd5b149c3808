// golden_paths: the names of the paths, each on a line.
// golden_paths NAME TIMES: goes that path so often, and prints the calls to the device that its
// counted steps have made, by kind.
#include <cstdlib>

#include <fmt/format.h>

#include "tests/golden/paths/paths.hpp"

namespace {

using namespace cistern;
using namespace cistern::golden;

void go(const Path& path, long times) {
  Rig rig(path.options);
  path.run(rig, times);
  for (std::size_t i = 0; i < kCallCount; ++i) {
    if (rig.calls()[i] != 0) fmt::print("{} {}\n", callName(Call(i)), rig.calls()[i]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (const Path& path : paths()) {
    if (argc == 1) fmt::print("{}\n", path.name);
    if (argc == 3 && path.name == argv[1]) return go(path, std::atol(argv[2])), 0;
  }
  return argc == 1 ? 0 : 2;
}
