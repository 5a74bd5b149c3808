#include "interop/report/advice.hpp"

#include <algorithm>

#include "tests/report/report_testing.hpp"
#include "tests/support/catch.hpp"

namespace cistern::report {
namespace {

using Catch::Matchers::ContainsSubstring;

std::string adviceIn(const Shortage& shortage) {
  testing::Script script;
  script.allocate(1, 3, 2);
  const Subject subject = testing::subjectOf(script.text());
  std::string all;
  for (const std::string& sentence : adviceFor(subject.recording, shortage)) all += sentence + '\n';
  return all;
}

constexpr std::uint64_t kMiBytes = 1 << 20;

TEST_CASE("advice says how much more memory serves the request") {
  Shortage shortage{Request{100 * kMiBytes}, 30 * kMiBytes, true, {}, {}, {}};
  CHECK_THAT(adviceIn(shortage), ContainsSubstring("70.00 MiB more of limit or of device memory"));
}

TEST_CASE("advice names the stack or label whose blocks are enough") {
  Shortage shortage{Request{100 * kMiBytes}, 30 * kMiBytes, true, {}, {}, {}};
  shortage.holders = {{3, 2, 0, 0, 4, 500 * kMiBytes, 0},
                      {0, 2, 0, 0, 2, 80 * kMiBytes, 0},
                      {0, 1, 0, 0, 1, 10 * kMiBytes, 0}};
  CHECK_THAT(adviceIn(shortage),
             ContainsSubstring("Free the 2 blocks of label step/forward first"));
  shortage.holders.erase(shortage.holders.begin() + 1, shortage.holders.end());
  CHECK_THAT(adviceIn(shortage),
             ContainsSubstring("Free the 4 blocks of train.py:41 in keep first"));
}

TEST_CASE("advice names several holders if none alone is enough") {
  Shortage shortage{Request{100 * kMiBytes}, 0, true, {}, {}, {}};
  shortage.holders = {{3, 0, 0, 0, 4, 60 * kMiBytes, 0}, {0, 2, 0, 0, 2, 50 * kMiBytes, 0}};
  CHECK_THAT(
      adviceIn(shortage),
      ContainsSubstring("train.py:41 in keep, label step/forward first: together they hold 110"));
}

TEST_CASE("advice says that enough is free in pieces, if it is") {
  Shortage shortage{Request{100 * kMiBytes}, 0, true, {}, {}, {}};
  shortage.unused = {{"too_small", 90 * kMiBytes, kMiBytes}};
  CHECK_THAT(adviceIn(shortage), !ContainsSubstring("in pieces"));
  shortage.unused = {{"too_small", 120 * kMiBytes, kMiBytes}};
  CHECK_THAT(adviceIn(shortage), ContainsSubstring("Enough is free, in pieces: 120.00 MiB"));
}

TEST_CASE("advice tells of memory that others hold free") {
  Shortage shortage{Request{100 * kMiBytes}, 0, true, {}, {}, {}};
  shortage.unused = {{"other_stream", 200 * kMiBytes, 0}, {"incomplete", 300 * kMiBytes, 0}};
  CHECK_THAT(adviceIn(shortage), ContainsSubstring("200.00 MiB is free in other streams' memory"));
  CHECK_THAT(adviceIn(shortage), ContainsSubstring("wait for that work"));
}

TEST_CASE("advice says whether the request fits without a holder, if that is known") {
  Shortage shortage{Request{100 * kMiBytes}, 0, true, {}, {}, {}};
  shortage.holders = {{3, 2, 0, 0, 4, 500 * kMiBytes, 0}};
  CHECK_THAT(adviceIn(shortage), !ContainsSubstring("Without that memory"));
  shortage.fits_without = [](const Holder&) { return true; };
  CHECK_THAT(adviceIn(shortage), ContainsSubstring("Without that memory the request fits."));
  shortage.fits_without = [](const Holder&) { return false; };
  CHECK_THAT(adviceIn(shortage), !ContainsSubstring("Free the 4 blocks"));
  shortage.holders.push_back({0, 2, 0, 0, 2, 200 * kMiBytes, 0});
  shortage.fits_without = [](const Holder& holder) { return holder.blocks == 4; };
  CHECK_THAT(adviceIn(shortage), ContainsSubstring("Free the 4 blocks"));
}

TEST_CASE("advice begins with what helps, and ends with a leak that is not enough") {
  Shortage shortage{Request{100 * kMiBytes}, 0, true, {}, {}, {}};
  shortage.holders = {{3, 2, 0, 0, 4, 500 * kMiBytes, 0}};
  shortage.leaking = shortage.holders;
  shortage.fits_without = [](const Holder&) { return true; };
  CHECK_THAT(adviceIn(shortage), Catch::Matchers::StartsWith("train.py:41 in keep keeps"));
  shortage.fits_without = [](const Holder&) { return false; };
  CHECK_THAT(adviceIn(shortage), Catch::Matchers::StartsWith("100.00 MiB more of limit"));
  CHECK_THAT(adviceIn(shortage),
             Catch::Matchers::EndsWith("Without that memory it still does not.\n"));
}

TEST_CASE("advice names each holder once") {
  Shortage shortage{Request{100 * kMiBytes}, 0, true, {}, {}, {}};
  shortage.holders = {{3, 2, 0, 0, 4, 500 * kMiBytes, 0}, {0, 1, 0, 0, 1, 10 * kMiBytes, 0}};
  shortage.leaking = {shortage.holders.front()};
  const std::string advice = adviceIn(shortage);
  CHECK_THAT(advice, ContainsSubstring("keeps ever more memory: it holds 500.00 MiB in 4 blocks"));
  CHECK_THAT(advice, !ContainsSubstring("Free the"));
  shortage.leaking.front().bytes = 30 * kMiBytes;
  CHECK_THAT(adviceIn(shortage), ContainsSubstring("less than the 100.00 MiB that are missing"));
}

TEST_CASE("advice does not repeat what the allocator has said") {
  Shortage shortage{Request{100 * kMiBytes}, 30 * kMiBytes, true, {}, {}, {}};
  shortage.unused = {{"too_small", 120 * kMiBytes, kMiBytes}};
  shortage.holders = {{3, 2, 0, 0, 4, 500 * kMiBytes, 0}};
  shortage.explained = true;
  CHECK_THAT(adviceIn(shortage), !ContainsSubstring("in pieces"));
  CHECK_THAT(adviceIn(shortage), !ContainsSubstring("more of limit"));
  CHECK_THAT(adviceIn(shortage), ContainsSubstring("Free the 4 blocks"));
}

}  // namespace
}  // namespace cistern::report
