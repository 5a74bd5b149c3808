#include "interop/command/overflow/iterations.hpp"

#include <algorithm>

#include "interop/command/overflow/lifetimes.hpp"
#include "interop/command/replay/script.hpp"
#include "interop/trace/trace.hpp"
#include "tests/command/command.hpp"
#include "tests/support/catch.hpp"

namespace cistern::test {
namespace {

using Living = std::vector<std::uint64_t>;
using Starts = std::vector<std::size_t>;

/// 100 bytes that stay, and a hill of 400 above them, `count` times.
Living hills(std::size_t count) {
  Living living{50, 100};
  for (std::size_t i = 0; i < count; ++i)
    for (const std::uint64_t bytes : {300u, 500u, 300u, 100u}) living.push_back(bytes);
  return living;
}

}  // namespace

TEST_CASE("an iteration ends where the program comes back to its floor") {
  CHECK(command::iterationStarts(hills(4)) == Starts{0, 6, 10, 14});
}

TEST_CASE("a valley is one end, behind the last of its lowest events") {
  const Living living = {100, 300, 500, 102, 100, 101, 100, 102, 300, 500, 100, 300, 500, 100};
  CHECK(command::iterationStarts(living) == Starts{0, 7, 11});
}

TEST_CASE("a dip that stays above the floor ends nothing, nor does a small hill") {
  const Living dips = {100, 500, 150, 500, 100, 500, 150, 500, 100, 120, 100, 500, 100};
  CHECK(command::iterationStarts(dips) == Starts{0, 5, 11});
}

TEST_CASE("a program that only grows, or does nothing, is one iteration") {
  CHECK(command::iterationStarts({10, 20, 30, 40, 50, 60}) == Starts{0});
  CHECK(command::iterationStarts({7, 7, 7, 7}) == Starts{0});
  CHECK(command::iterationStarts({0}) == Starts{0});
  CHECK(command::iterationStarts({}) == Starts{0});
}

TEST_CASE("what a program gives back at its very end is no floor") {
  Living living = hills(40);
  const std::size_t count = command::iterationStarts(living).size();
  living.push_back(40);
  living.push_back(0);
  CHECK(command::iterationStarts(living).size() == count);
}

TEST_CASE("a recorded training has its steps") {
  const auto script = command::makeScript(trace::readTrace(recordedTrace("gpt2_varlen")));
  const Starts starts = command::iterationStarts(command::livingBytes(script));
  CHECK(starts.size() > 15);
  CHECK(starts.size() < 30);
  CHECK(std::is_sorted(starts.begin(), starts.end()));
}

}  // namespace cistern::test
