// The main function of every test program. With Catch2 version 2 this is also where the library
// itself is compiled, once for all of them.
#define CATCH_CONFIG_RUNNER
#include "tests/support/catch.hpp"
#include "tests/support/skipped.hpp"
#include "tests/support/watchdog.hpp"

int main(int argc, char** argv) {
  cistern::test::watchCases();
  return cistern::test::reportSkipped(Catch::Session().run(argc, argv));
}
