// Two names of one file are found out before anything is written.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <unistd.h>

#include "interop/command/writable.hpp"
#include "tests/command/command.hpp"
#include "tests/support/catch.hpp"

using Catch::Matchers::ContainsSubstring;

namespace cistern::test {
namespace {

namespace fs = std::filesystem;

std::string textIn(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Is in a folder while it lives.
class Inside {
 public:
  explicit Inside(const fs::path& folder) : before_(fs::current_path()) {
    fs::current_path(folder);
  }
  ~Inside() { fs::current_path(before_); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  const fs::path before_;
};

/// A standard stream is a file while it lives.
class Redirected {
 public:
  Redirected(int stream, const std::string& path) : stream_(stream), before_(dup(stream)) {
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND, 0600);
    REQUIRE(file >= 0);
    REQUIRE(dup2(file, stream) == stream);
    (void)close(file);
  }
  ~Redirected() {
    (void)std::fflush(stdout);
    (void)dup2(before_, stream_);
    (void)close(before_);
  }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;

 private:
  const int stream_, before_;
};

void requireRefusedAs(const std::vector<std::string>& args, const std::string& message) {
  const Outcome outcome = runCommand(args);
  INFO(outcome.err);
  CHECK(outcome.status == 2);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, ContainsSubstring(message));
}

}  // namespace

TEST_CASE("one file is found under two names, whether it is there or not") {
  const TempFile file("a", "");
  const fs::path folder = fs::path(file.path()).parent_path();
  const Inside inside(folder);
  fs::create_directory("in");
  fs::create_symlink("../new", "in/link");  // to a file that is not there
  fs::create_symlink(folder, "in/same");
  fs::create_hard_link("a", "b");
  for (const auto& [one, other] : std::vector<std::pair<std::string, std::string>>{
           {"a", "./a"},
           {"a", folder / "a"},
           {"a", "in/../a"},
           {"a", "b"},
           {"a", "in/same/a"},
           {"new", "./new"},
           {"new", folder / "new"},
           {"new", "in/link"},
           {"new", "in/same/in/../new"},
       }) {
    INFO(one << " and " << other);
    CHECK(command::sameFile(one, other));
    CHECK(command::sameFile(other, one));
  }
  CHECK_FALSE(command::sameFile("a", "new"));
  CHECK_FALSE(command::sameFile("new", "newer"));
  CHECK_FALSE(command::sameFile("/dev/null", "/dev/null"));  // which keeps nothing
  fs::create_symlink("round", "round");
  CHECK_FALSE(command::sameFile("round", "a"));
}

TEST_CASE("run refuses one file under two names for its two outputs") {
  const TempFile file("made", "");
  const Inside inside(fs::path(file.path()).parent_path());
  const std::string message = "--trace and --json would both write a.x";
  requireRefusedAs({"run", "--json", "a.x", "--trace", "./a.x", "true"}, message);
  fs::create_symlink("a.x", "link");
  requireRefusedAs({"run", "--json", "a.x", "--trace", "link", "true"}, message);
  CHECK_FALSE(fs::exists("a.x"));
}

TEST_CASE("a picture is not written over the trace that it is of") {
  const std::string text = TraceText().allocate(1024).free(0).text();
  const TempFile trace("small.trace", text);
  const Inside inside(fs::path(trace.path()).parent_path());
  fs::create_symlink("small.trace", "link.svg");
  fs::create_hard_link("small.trace", "hard.svg");
  for (const std::string picture : {"link.svg", "hard.svg"}) {
    requireRefusedAs({"replay", "small.trace", "--device", "sim", "--plot", picture},
                     "--plot " + picture + " would overwrite the trace small.trace");
  }
  const Redirected input(STDIN_FILENO, "small.trace");
  requireRefusedAs({"replay", "-", "--device", "sim", "--plot", "hard.svg"},
                   "--plot hard.svg would overwrite the trace /dev/stdin");
  CHECK(textIn("small.trace") == text);
}

TEST_CASE("no output goes to the file that the standard output writes") {
  const TempFile trace("small.trace", TraceText().allocate(1024).free(0).text());
  const Inside inside(fs::path(trace.path()).parent_path());
  const std::string said = "the standard output and ";
  {
    const Redirected picture(STDOUT_FILENO, "two.svg");
    requireRefusedAs({"replay", "small.trace", "--device", "sim", "--plot", "./two.svg"},
                     said + "--plot would both write ./two.svg");
    requireRefusedAs({"run", "--json", "two.svg", "true"}, said + "--json would both");
    requireRefusedAs({"run", "--trace", "two.svg", "true"}, said + "--trace would both");
  }
  const Redirected generated(STDOUT_FILENO, "serve-1.trace.gz");
  requireRefusedAs({"generate", "serve:1"}, said + "the program serve:1 would both write");
  CHECK(fs::file_size("serve-1.trace.gz") == 0);
}

}  // namespace cistern::test
