// --plot: what it refuses, what is left of the file, and that the figures are those without it.
// What is drawn: plot_test.py.
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "tests/command/command.hpp"
#include "tests/support/catch.hpp"

using Catch::Matchers::ContainsSubstring;

namespace cistern::test {
namespace {

const std::string kPlottedBlocks =
    TraceText().allocate(40 * kMiB).allocate(20 * kMiB).free(0).free(1).text();

std::string contentOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A trace, and the name of a picture beside it that is not there.
struct Beside {
  explicit Beside(const std::string& text = kPlottedBlocks) : trace("two.trace", text) {}

  std::string path(const std::string& name = "two.svg") const {
    return (std::filesystem::path(trace.path()).parent_path() / name).string();
  }
  Outcome plot(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"replay", trace.path(), "--device", "sim", "--plot", path()});
    return runCommand(more);
  }

  TempFile trace;
};

void requirePlotRefused(const std::vector<std::string>& more, const std::string& message) {
  std::vector<std::string> args = {"replay", "--device", "sim"};
  args.insert(args.end(), more.begin(), more.end());
  const Outcome outcome = runCommand(args);
  INFO(outcome.err);
  CHECK(outcome.status == 2);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, ContainsSubstring(message));
}

}  // namespace

TEST_CASE("a picture is of one program") {
  const Beside here;
  const std::string more = "--plot draws one program, under one policy or several, and 2 are given";
  requirePlotRefused({here.trace.path(), here.trace.path(), "--plot", here.path()}, more);
  requirePlotRefused({"--generate", "serve:1-2", "--plot", here.path()}, more);
  requirePlotRefused({here.trace.path(), "--generate", "serve:1", "--plot", here.path()}, more);
  CHECK_FALSE(std::filesystem::exists(here.path()));
}

TEST_CASE("a picture's name ends in .svg, so that none is written over a trace") {
  const Beside here;
  for (const std::string& path : {here.trace.path(), here.path("two.png"), std::string(".svg"),
                                  std::string("-"), here.path("two.svg.gz")}) {
    requirePlotRefused({here.trace.path(), "--plot", path}, "its name has to end in .svg");
  }
  requirePlotRefused({here.trace.path(), "--plot", ""}, "--plot: needs a value");
  CHECK(contentOf(here.trace.path()) == kPlottedBlocks);
}

TEST_CASE("a picture that cannot be written is refused before the replay begins") {
  const Beside here;
  requirePlotRefused({here.trace.path(), "--plot", here.path("none/two.svg")},
                     "none/two.svg: cannot be written: No such file or directory");
  std::filesystem::create_directory(here.path("folder.svg"));
  requirePlotRefused({here.trace.path(), "--plot", here.path("folder.svg")},
                     "folder.svg: cannot be written: Is a directory");
}

TEST_CASE(
    "a replay that is not begun leaves the picture as it was, and none where there was none") {
  const Beside bad("a many 0 0\n");
  requirePlotRefused({bad.trace.path(), "--plot", bad.path()}, "expected");
  CHECK_FALSE(std::filesystem::exists(bad.path()));
  std::ofstream(bad.path()) << "old";
  requirePlotRefused({bad.trace.path(), "--plot", bad.path()}, "expected");
  CHECK(contentOf(bad.path()) == "old");
}

TEST_CASE("a picture replaces what was there, and the table says where it is") {
  const Beside here;
  std::ofstream(here.path()) << std::string(100'000, 'x');
  const Outcome outcome = here.plot();
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.out, ContainsSubstring("The picture is in "));
  const std::string picture = contentOf(here.path());
  CHECK(picture.rfind("<svg ", 0) == 0);
  CHECK(picture.find('x', picture.find("</svg>")) == std::string::npos);
}

TEST_CASE("the figures are the same with a picture as without") {
  const Beside here;
  for (const std::string policy : {"cistern", "torch-rules", "torch-expandable", "driver-pool"}) {
    const std::string trace = recordedTrace("streams_prefetch");
    const std::vector<std::string> args = {"replay", trace,    "--device",     "sim", "--policy",
                                           policy,   "--json", "--gpu-lag-us", "1000"};
    std::vector<std::string> drawn = args;
    drawn.insert(drawn.end(), {"--plot", here.path()});
    auto without = runCommand(args).rows().at(0), with = runCommand(drawn).rows().at(0);
    for (const char* key : {"ns_per_event", "host_bytes_peak"}) {
      without.erase(key);
      with.erase(key);
    }
    CHECK(with == without);
  }
}

TEST_CASE("a picture goes with the other ways to print, to search and to check") {
  const Beside here;
  CHECK(here.plot({"--json"}).rows().size() == 1);
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"--csv"}, {"--fit"}, {"--check"}, {"--threads", "3"}, {"--repeat", "2"}}) {
    const Outcome outcome = here.plot(more);
    INFO(more[0] << outcome.err);
    CHECK(outcome.status == 0);
    CHECK_THAT(contentOf(here.path()), ContainsSubstring("</svg>"));
  }
}

TEST_CASE("a program that is not served is drawn as far as it came") {
  const Beside here;
  CHECK(here.plot({"--capacity", "50MiB"}).status == 1);
  CHECK_THAT(contentOf(here.path()), ContainsSubstring(", not served"));
}

}  // namespace cistern::test
