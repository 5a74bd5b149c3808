// The variables of the environment: who obeys them, and what is said of a wrong value.
#include "interop/command/environment.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "allocator/device/open.hpp"
#include "tests/command/command.hpp"
#include "tests/support/catch.hpp"

using Catch::Matchers::ContainsSubstring;

namespace cistern::test {
namespace {

/// A variable has a value while it lives. It had none before.
class WithVariable {
 public:
  WithVariable(const char* name, const std::string& value) : name_(name) {
    REQUIRE(setenv(name, value.c_str(), 1) == 0);
  }
  ~WithVariable() { (void)unsetenv(name_); }
  WithVariable(const WithVariable&) = delete;
  WithVariable& operator=(const WithVariable&) = delete;

 private:
  const char* const name_;
};

command::Setting settingNamed(const std::string& name) {
  for (const command::Setting& setting : command::environmentSettings()) {
    if (setting.name == name) return setting;
  }
  return {};
}

}  // namespace

TEST_CASE("cistern run of a build without a GPU's SDK says what to install") {
  const WithVariable none("CISTERN_PRELOAD", "");
  if (hasVendor(backends())) return;
  const auto ran = runCommand({"run", "--", "true"});
  CHECK(ran.status != 0);
  CHECK_THAT(ran.err, ContainsSubstring("built without CUDA and HIP: install the CUDA toolkit 13"));
}

TEST_CASE("every command that CISTERN_BACKEND concerns obeys it, or refuses it by name") {
  const TempFile trace("small.trace", TraceText().allocate(1024).free(0).text());
  {
    const WithVariable sim("CISTERN_BACKEND", "sim");
    CHECK(runCommand({"replay", trace.path(), "--json"}).rows().at(0)["device"] == "sim");
    const Outcome run = runCommand({"run", "true"});
    CHECK(run.status == 2);
    CHECK_THAT(run.err, ContainsSubstring("CISTERN_BACKEND is sim, and a program runs on a GPU"));
  }
  const WithVariable wrong("CISTERN_BACKEND", "simm");
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
           {"replay", trace.path()}, {"run", "true"}, {"generate", "serve:1"}}) {
    const Outcome outcome = runCommand(args);
    CHECK(outcome.status == 2);
    CHECK(outcome.out.empty());
    CHECK(outcome.err ==
          "cistern: CISTERN_BACKEND: unknown backend 'simm': must be auto, cuda, hip or sim; did "
          "you mean sim?\n");
  }
}

TEST_CASE("a wrong value is said with the variable's name and what is allowed") {
  const TempFile file("file", "");
  for (const auto& [name, value, message] :
       std::vector<std::tuple<const char*, std::string, std::string>>{
           {"CISTERN_CONF", "limits:1", "CISTERN_CONF, column 1: "},
           {"CISTERN_BACKEND", "CUDA", "did you mean cuda?"},
           {"CISTERN_TORCH", "nativ", "must be auto, native or plugin; did you mean native?"},
           {"CISTERN_ROOT", "/nowhere", "CISTERN_ROOT is '/nowhere', which has no build/"},
           {"CISTERN_CACHE", file.path(), "which is no folder"},
           {"CISTERN_PRELOAD", "/nowhere/it.so", "CISTERN_PRELOAD is '/nowhere/it.so'"},
           {"CISTERN_PRELOAD", "/", "CISTERN_PRELOAD is '/', which is a folder"},
           {"CISTERN_CUDA_LIBRARY", "/nowhere/cudart.so", "which is not there"},
           {"CISTERN_HIP_LIBRARY", "/nowhere/hip.so", "which is not there"},
       }) {
    const WithVariable set(name, value);
    INFO(name);
    CHECK_THAT(settingNamed(name).problem, ContainsSubstring(message) && ContainsSubstring(name));
    CHECK(settingNamed(name).warning.empty());
    CHECK(runCommand({"doctor", "--device", "sim"}).status == 1);
  }
}

TEST_CASE("right values, and empty ones, are not complained of") {
  for (const char* name : {"CISTERN_CONF", "CISTERN_BACKEND", "CISTERN_TORCH", "CISTERN_ROOT",
                           "CISTERN_CACHE", "CISTERN_CUDA_LIBRARY", "CISTERN_HIP_LIBRARY"}) {
    const WithVariable empty(name, "");
    CHECK(settingNamed(name).problem.empty());
  }
  const WithVariable torch("CISTERN_TORCH", "plugin");
  const WithVariable cuda("CISTERN_CUDA_LIBRARY", "libcudart.so.12");
  const WithVariable hip("CISTERN_HIP_LIBRARY", "libamdhip64.so.6");
  CHECK(settingNamed("CISTERN_TORCH").problem.empty());
  CHECK(settingNamed("CISTERN_CUDA_LIBRARY").problem.empty());
  CHECK(settingNamed("CISTERN_HIP_LIBRARY").problem.empty());
}

TEST_CASE("doctor warns of a variable that nothing reads, with the one that was meant") {
  const WithVariable misspelt("CISTERN_BAKCEND", "sim");
  const WithVariable other("CISTERN_XYZZY", "1");
  const Outcome outcome = runCommand({"doctor", "--device", "sim"});
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.out, ContainsSubstring("warning: nothing reads a variable named "
                                            "CISTERN_BAKCEND; did you mean CISTERN_BACKEND?\n"));
  CHECK_THAT(outcome.out, ContainsSubstring("named CISTERN_XYZZY\n"));
}

TEST_CASE("the page of the environment has every variable that doctor knows, in its order") {
  std::ifstream file(std::string(CISTERN_SOURCE_DIR) + "/docs/environment.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  std::size_t before = 0;
  for (const command::Variable& variable : command::variables()) {
    const std::size_t at = page.find("\n| `" + std::string(variable.name) + "`");
    INFO(variable.name);
    REQUIRE(at != std::string::npos);
    CHECK(at > before);
    before = at;
  }
}

}  // namespace cistern::test
