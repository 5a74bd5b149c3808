#define CATCH_CONFIG_EXTERNAL_INTERFACES  // version 2 declares listeners with it
#include "tests/support/watchdog.hpp"

#include <csignal>

#include <unistd.h>

#include "tests/support/catch.hpp"

namespace cistern::test {
namespace {

constexpr unsigned kMostSeconds = 900;  // of one case; half of what a whole program is given

pid_t tester = 0;

// Catch2 reports SIGTERM with the case's name and line, and ends the program. A child of a case has
// set an alarm of its own, which ends it.
void endByName(int alarmed) {
  if (getpid() != tester) std::signal(alarmed, SIG_DFL);
  std::raise(getpid() == tester ? SIGTERM : alarmed);
}

struct Watchdog final : Catch::EventListenerBase {
  using Catch::EventListenerBase::EventListenerBase;
  void testCaseStarting(const Catch::TestCaseInfo&) override { alarm(kMostSeconds); }
  void testCaseEnded(const Catch::TestCaseStats&) override { alarm(0); }
};
CATCH_REGISTER_LISTENER(Watchdog)

}  // namespace

void watchCases() {
  tester = getpid();
  std::signal(SIGALRM, endByName);
}

}  // namespace cistern::test
