// `cistern options`.
#include "cistern/options.hpp"

#include "allocator/base/option_table.hpp"
#include "tests/command/command.hpp"
#include "tests/support/catch.hpp"

using Catch::Matchers::ContainsSubstring;

namespace cistern::test {

TEST_CASE("options lists every option with its default") {
  const Outcome outcome = runCommand({"options"});
  CHECK(outcome.status == 0);
  for (const OptionRow& row : optionTable()) {
    CHECK_THAT(outcome.out, ContainsSubstring(std::string(row.name) + ":" + row.print(Options{})));
  }
}

TEST_CASE("options --markdown is the page of the documentation") {
  const Outcome outcome = runCommand({"options", "--markdown"});
  CHECK(outcome.status == 0);
  CHECK(outcome.out == optionsMarkdown());
}

}  // namespace cistern::test
