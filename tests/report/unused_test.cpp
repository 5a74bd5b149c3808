#include "interop/report/unused.hpp"

#include "tests/report/report_testing.hpp"
#include "tests/support/catch.hpp"

namespace cistern::report {
namespace {

using recording::Unused;

struct Free {
  explicit Free(const std::string& text)
      : subject(testing::subjectOf(text)),
        lives(livesOf(subject.recording)),
        living(livingAfter(lives, subject.recording.events.size())),
        reserved(reservedAfter(subject.recording, subject.recording.events.size())),
        gaps(gapsIn(reserved, lives, living)) {}

  /// The bytes and the largest piece that are unused for a reason; {0, 0} if there are none.
  std::pair<std::uint64_t, std::uint64_t> of(const std::string& why,
                                             std::optional<Request> request) {
    for (const Unused& unused : unusedBy(request, gaps, lives, living))
      if (unused.why == why) return {unused.bytes, unused.largest};
    return {0, 0};
  }

  const Subject subject;
  const std::vector<Life> lives;
  const Living living;
  const recording::ReservedRanges reserved;
  const std::vector<Gap> gaps;
};

// A segment of 0x4000 bytes with blocks at 0x1000 and 0x2000, each of 0x400 bytes.
const std::string kTwoBlocks =
    "r alloc 1000 16384 0 0 0\na 1024 0 0 1000 0 0 0\na 1024 0 0 2000 0 0 0\n";

TEST_CASE("gaps are what blocks leave of a segment") {
  const Free free(kTwoBlocks);
  REQUIRE(free.gaps.size() == 2);
  CHECK(free.gaps[0].address == 0x1400);
  CHECK(free.gaps[0].bytes == 0xc00);
  CHECK(free.gaps[1].address == 0x2400);
  CHECK(free.gaps[1].bytes == 0x5000 - 0x2400);
}

TEST_CASE("a request sees pieces that are too small, and others that were kept") {
  Free free(kTwoBlocks);
  CHECK(free.of("too_small", Request{0x1000}) ==
        std::pair<std::uint64_t, std::uint64_t>{0xc00, 0xc00});
  CHECK(free.of("kept_whole", Request{0x1000}).first == 0x5000 - 0x2400);
}

TEST_CASE("memory of other streams and pools is told apart") {
  Free free(
      "P 0 4\nr alloc 1000 4096 0 0 0\nr alloc 9000 8192 3 0 0\nr alloc 20000 512 0 1 0\n"
      "a 4096 0 0 1000 0 0 0\n");
  CHECK(free.of("other_stream", Request{512}).first == 8192);
  CHECK(free.of("other_pool", Request{512}).first == 512);
  CHECK(free.of("too_small", Request{512}).first == 0);
  CHECK(free.of("free", std::nullopt).first == 8192);
  CHECK(free.of("other_pool", std::nullopt).first == 512);
}

TEST_CASE("a freed block whose uses go on is incomplete, and no gap") {
  Free free(
      "r alloc 1000 4096 0 0 0\na 4096 0 0 1000 0 0 0\na 512 0 0 0 0 0 0\nf 0 1\ne 0 1\nf 1 1\n");
  const Living pending = livingAfter(free.lives, 4);
  const std::vector<Gap> gaps =
      gapsIn(reservedAfter(free.subject.recording, 4), free.lives, pending);
  CHECK(gaps.empty());
  const std::vector<Unused> unused = unusedBy(Request{512}, gaps, free.lives, pending);
  REQUIRE(unused.size() == 1);
  CHECK(unused[0].why == "incomplete");
  CHECK(unused[0].bytes == 4096);
}

TEST_CASE("pages side by side are one piece, and segments are not") {
  const Free pages("r map 1000 4096 0 0 0\nr map 2000 4096 0 0 0\na 512 0 0 1000 0 0 0\n");
  REQUIRE(pages.gaps.size() == 1);
  CHECK(pages.gaps[0].bytes == 8192 - 512);
  const Free segments("r alloc 1000 4096 0 0 0\nr alloc 2000 4096 0 0 0\na 512 0 0 1000 0 0 0\n");
  CHECK(segments.gaps.size() == 2);
}

TEST_CASE("a block may lie across pages") {
  const Free pages("r map 1000 4096 0 0 0\nr map 2000 4096 0 0 0\na 6144 0 0 1000 0 0 0\n");
  REQUIRE(pages.gaps.size() == 1);
  CHECK(pages.gaps[0].address == 0x1000 + 6144);
}

TEST_CASE("what is given back is free no longer, also in part") {
  const Free whole("r alloc 1000 4096 0 0 0\na 512 0 0 0 0 0 0\nr free 1000 4096 0 0 0\n");
  CHECK(whole.gaps.empty());
  const Free part("r map 1000 12288 0 0 0\na 512 0 0 1000 0 0 0\nr unmap 2000 4096 0 0 0\n");
  REQUIRE(part.gaps.size() == 2);
  CHECK(reservedBytesAfter(part.subject.recording, 3) == 8192);
  CHECK(part.gaps[0].bytes == 4096 - 512);
  CHECK(part.gaps[1].address == 0x3000);
}

}  // namespace
}  // namespace cistern::report
