// How far a stream is known to have come, by what its marks have answered.
#include "allocator/engine/heap/completion.hpp"

#include "tests/support/catch.hpp"

namespace cistern::test {
namespace {

using MarkAnswer = Completion::Answer;

/// Something is freed, and marked; the epoch that the mark ends.
std::uint64_t marked(Completion& known) {
  known.noteFreed();
  REQUIRE(known.beginLook(true) == Completion::Look::kOurs);
  known.beginMark();
  const std::uint64_t until = known.endEpoch();
  known.endMark(MarkAnswer::kNotYet, until, false, nullptr);
  known.audit();
  return until;
}

void pass(Completion& known, MarkAnswer answer) {
  REQUIRE(known.beginLook(false) == Completion::Look::kOurs);
  known.passOldest(answer);
  known.endLook();
  known.audit();
}

}  // namespace

TEST_CASE("marks are passed in order, and each says what was freed before it", "[engine][part]") {
  Completion known(1);
  const std::uint64_t first = marked(known), second = marked(known);
  CHECK_FALSE(known.complete(first));
  pass(known, MarkAnswer::kReached);
  CHECK(known.complete(first));
  CHECK_FALSE(known.complete(second));
  CHECK(known.anyUnknown());
  pass(known, MarkAnswer::kReached);
  CHECK(known.complete(second));
  CHECK_FALSE(known.anyUnknown());
  CHECK_FALSE(known.complete(known.now()));
}

TEST_CASE("what was marked in vain is complete with the next mark", "[engine][part]") {
  Completion known(1);
  const std::uint64_t lost = marked(known);
  pass(known, MarkAnswer::kInVain);
  CHECK_FALSE(known.complete(lost));
  CHECK(known.anyUnmarked());
  (void)marked(known);
  CHECK_FALSE(known.anyUnmarked());
  pass(known, MarkAnswer::kReached);
  CHECK(known.complete(lost));
}

TEST_CASE("one thread looks at a time, and only where there is something to ask or to mark",
          "[engine][part]") {
  Completion known(1);
  CHECK(known.beginLook(false) == Completion::Look::kNone);
  CHECK(known.beginLook(true) == Completion::Look::kOurs);
  CHECK(known.isAsked());
  CHECK(known.beginLook(true) == Completion::Look::kOthers);
  known.endLook();
  CHECK_FALSE(known.isAsked());
  (void)marked(known);
  CHECK(known.beginLook(false) == Completion::Look::kOurs);  // there is a mark to ask
}

TEST_CASE("where stamps run out those of old epochs mean a later one, unless they are complete",
          "[engine][part]") {
  Completion known(UINT32_MAX - 2);
  const std::uint64_t first = known.endEpoch(), second = known.endEpoch();
  known.noteComplete(first);
  CHECK(known.epochOf(known.stampOf(second)) == second);
  CHECK(known.ranOut());
  known.noteFreed();
  known.moveBase();
  known.audit();
  CHECK(known.anyUnmarked());
  CHECK(known.stampOf(first) == Completion::kComplete);
  CHECK(known.epochOf(known.stampOf(second)) == known.now());
  CHECK(known.epochOf(known.stampOf(known.now())) == known.now());
  CHECK(known.complete(first));
  CHECK_FALSE(known.complete(second));
  const std::uint64_t ended = known.endEpoch();
  CHECK(known.epochOf(known.stampOf(ended)) == ended);
  known.noteComplete(ended);
  CHECK(known.complete(second));
  known.audit();
}

TEST_CASE("much that is freed is worth a mark while others look for memory, so many times",
          "[engine][part]") {
  constexpr std::uint64_t kHeap = 6400;
  Completion known(1);
  known.noteFreed(kHeap);
  CHECK_FALSE(known.wantsMark(kHeap));
  known.noteSought();
  CHECK(known.wantsMark(kHeap));
  int times = 0;
  for (; known.wantsMark(kHeap) && times < 1000; ++times) {
    known.noteMarkAtFree();
    CHECK_FALSE(known.wantsMark(kHeap));
    known.noteFreed(kHeap / Completion::kMarksOfAll - 1);
    CHECK_FALSE(known.wantsMark(kHeap));
    known.noteFreed(1);
  }
  CHECK((times > 1 && times < 1000));
}

TEST_CASE("a capture ends once, and the number of another ends nothing", "[engine][part]") {
  Completion known(1);
  CHECK(known.captured() == 0);
  known.beginCapture(5);
  known.audit();
  CHECK(known.captured() == 5);
  CHECK_FALSE(known.endCapture(4));
  CHECK(known.captured() == 5);
  CHECK(known.endCapture(5));
  CHECK(known.captured() == 0);
}

TEST_CASE("what has left is in use until the epoch of its last use is complete", "[engine][part]") {
  Completion known(1);
  CHECK_FALSE(known.leftInUse());
  const std::uint64_t first = known.endEpoch();
  known.noteLeft(first);
  known.beginCapture(5);
  known.noteLeft(known.now());
  const std::uint64_t second = known.endEpoch();
  known.audit();
  CHECK((known.leftInUse() && known.leftInUseBefore()));
  known.noteComplete(first);
  CHECK((known.leftInUse() && !known.leftInUseBefore()));
  known.noteLeft(first);  // an earlier one changes nothing
  known.noteComplete(second);
  CHECK_FALSE(known.leftInUse());
}

}  // namespace cistern::test
