// `cistern options`.
#include "cistern/options.hpp"

#include <cstdlib>

#include "allocator/base/option_table.hpp"
#include "tests/command/command.hpp"
#include "tests/support/catch.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

namespace cistern::test {

TEST_CASE("options lists every option with its default") {
  const Outcome outcome = runCommand({"options"});
  CHECK(outcome.status == 0);
  for (const OptionRow& row : optionTable()) {
    CHECK_THAT(outcome.out, ContainsSubstring(std::string(row.name) + ":" + row.print(Options{})));
  }
}

TEST_CASE("options NAME says of one option what it is for, its default, and what is set here") {
  REQUIRE(unsetenv("CISTERN_CONF") == 0);
  const Outcome plain = runCommand({"options", "limit"});
  CHECK(plain.status == 0);
  CHECK_THAT(plain.out, StartsWith("limit:none\n") && ContainsSubstring("\n    Allowed: ") &&
                            EndsWith("    Now: none, the default.\n"));
  REQUIRE(setenv("CISTERN_CONF", "limit:64MiB", 1) == 0);
  CHECK_THAT(runCommand({"options", "limit"}).out,
             StartsWith("limit:none\n") && EndsWith("    Now: 64 MiB, from CISTERN_CONF.\n"));
  CHECK_THAT(runCommand({"options", "recycle"}).out, ContainsSubstring(", the default.\n"));
  REQUIRE(setenv("CISTERN_CONF", "limits:64MiB", 1) == 0);
  const Outcome wrong = runCommand({"options", "limit"});
  CHECK(wrong.status == 0);
  CHECK_THAT(wrong.out, ContainsSubstring("CISTERN_CONF cannot be read"));
  REQUIRE(unsetenv("CISTERN_CONF") == 0);
  CHECK(runCommand({"options", "max_split_size_mb"}).out ==
        runCommand({"options", "max_split_size"}).out);
}

TEST_CASE("options --markdown is the page of the documentation") {
  const Outcome outcome = runCommand({"options", "--markdown"});
  CHECK(outcome.status == 0);
  CHECK(outcome.out == optionsMarkdown());
}

}  // namespace cistern::test
