// The lines of a C++ program, named from its symbols.
#include "interop/recording/code_lines.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include <sys/stat.h>

#include "tests/history/history_support.hpp"
#include "tests/support/skipped.hpp"

namespace cistern::test {
namespace {

using recording::Event;
using recording::EventKind;
using recording::Frame;
using recording::Recording;

constexpr const char* kSource = CISTERN_SOURCE_DIR "/tests/history/leaking/leaking.cpp";

/// The number of the line that ends in `comment`.
std::uint32_t lineOf(const std::string& comment) {
  std::ifstream file(kSource);
  std::uint32_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.ends_with("// " + comment)) return number;
  }
  FAIL("no line ends so: " << comment);
  return 0;
}

bool hasTool() { return std::system("command -v addr2line llvm-symbolizer >/dev/null") == 0; }

TEST_CASE("the line of a program that leaks is named") {
  if (!hasTool()) return skipped("neither addr2line nor llvm-symbolizer is here");
  const TemporaryFile file("leaking.trace");
  const std::string command = std::string(CISTERN_LEAKING) + " " + file.path().string();
  REQUIRE(std::system(command.c_str()) == 0);
  std::vector<Recording> read = recording::readRecordings(file.path());
  recording::nameCodeLines(read);
  recording::audit(read[0]);
  std::vector<std::uint32_t> living;
  for (const Event& event : read[0].events) {
    if (event.kind == EventKind::kAllocate && event.value == 7000)
      living.push_back(read[0].placeOf(event).stack);
  }
  REQUIRE(living.size() == 3);
  const Frame& inner = read[0].frames[read[0].stacks[living[0]].frame];
  const Frame& outer = read[0].frames[read[0].stacks[read[0].stacks[living[0]].parent].frame];
  CHECK(inner.function.find("bufferOf") != std::string::npos);
  CHECK(inner.file.ends_with("leaking.cpp"));
  CHECK(inner.line == lineOf("bufferOf allocates"));
  CHECK(outer.function.find("work") != std::string::npos);
  CHECK(outer.line == lineOf("work leaks"));
}

TEST_CASE("only a module that nobody else may write is looked at") {
  if (!hasTool()) return skipped("neither addr2line nor llvm-symbolizer is here");
  const TemporaryFile copy("module");
  std::filesystem::copy_file(CISTERN_LEAKING, copy.path());
  const auto namedIn = [&](mode_t mode) {
    REQUIRE(::chmod(copy.path().c_str(), mode) == 0);
    std::vector<Recording> read(1);
    for (std::uint64_t at = 0x1000; at < 0x400000; at += 0x400) {  // code is somewhere there
      char offset[32];
      std::snprintf(offset, sizeof offset, "+0x%llx", static_cast<unsigned long long>(at));
      read[0].frames.push_back({"it", copy.path().string() + offset, 0});
    }
    recording::nameCodeLines(read);
    return std::ranges::any_of(read[0].frames, [](const Frame& f) { return f.function != "it"; });
  };
  CHECK(namedIn(0755));
  CHECK_FALSE(namedIn(0757));
}

TEST_CASE("frames that name no module stay as they are") {
  std::vector<Recording> read(1);
  read[0].frames = {
      {"f", "a.py", 3}, {"g", "/nowhere/it+0x10", 0}, {"h", "+0x10", 0}, {"i", "", 0}};
  recording::nameCodeLines(read);
  CHECK(read[0].frames[0].line == 3);
  CHECK(read[0].frames[1].file == "/nowhere/it+0x10");
  CHECK(read[0].frames[2].function == "h");
}

}  // namespace
}  // namespace cistern::test
