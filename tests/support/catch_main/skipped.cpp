#define CATCH_CONFIG_EXTERNAL_INTERFACES  // version 2 declares listeners with it
#include "tests/support/skipped.hpp"

#include <cstdio>
#include <map>
#include <set>

#include "tests/support/catch.hpp"

namespace cistern::test {
namespace {

std::map<std::string, std::set<std::string>> cases_by_reason;
bool asserted = false;

struct NoteAssertions final : Catch::EventListenerBase {
  using Catch::EventListenerBase::EventListenerBase;
  void testRunEnded(const Catch::TestRunStats& run) override {
    asserted = run.totals.assertions.total() > 0;
  }
};
CATCH_REGISTER_LISTENER(NoteAssertions)

}  // namespace

void skipped(const std::string& why) {
  cases_by_reason[why].insert(Catch::getResultCapture().getCurrentTestName());
}

int reportSkipped(int result) {
  for (const auto& [why, cases] : cases_by_reason)
    std::printf("%zu case%s skipped: %s\n", cases.size(), cases.size() == 1 ? "" : "s",
                why.c_str());
  return result == 0 && !cases_by_reason.empty() && !asserted ? kAllSkipped : result;
}

}  // namespace cistern::test
