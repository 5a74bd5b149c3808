// Each device call of a sleep and of a wake fails in turn: the pools are as before, or asleep, or
// awake, and nothing is lost.
#include "tests/pools/sleep_support.hpp"

namespace cistern::test {
namespace {

/// A pool with blocks, holes, and a graph that has a temporary and a result.
struct SleepProgram {
  SleepProgram() : rig(simOf(kGiB), "page_size:2M"), graph(rig.pools) {
    a = rig.filled(9 * kMiB, 1);
    void* const hole = rig.filled(5 * kMiB, 2);
    b = rig.filled(300 * kKiB, 3);
    rig.pools.setContents(b, Contents::kZero);
    {
      GraphCapture capture(graph, rig.s, rig.id());
      void* const temporary = rig.allocate(3 * kMiB, rig.s);
      rig.work.fill(rig.s, toAddress(temporary), 3 * kMiB, 4);
      rig.free(temporary);
      c = rig.allocate(3 * kMiB, rig.s);
      rig.work.fill(rig.s, toAddress(c), 3 * kMiB, 5);
      capture.end();
    }
    graph.replay(rig.s);
    rig.free(hole);
    rig.finish();
    reserved = rig.reservedBy(rig.id());
  }
  ~SleepProgram() {
    for (void* block : {a, b, c}) rig.free(block);
  }
  /// Whatever has failed, the memory is all there if the pool is awake, and all of it comes back.
  void check() {
    rig.audit();
    if (rig.pools.isAsleep(rig.id())) {
      (void)rig.pools.wake({rig.id()});
      rig.audit();
      CHECK(zeroes() == 0);
    }
    CHECK(rig.wrong(a, 9 * kMiB, 1) == 0);
    CHECK(rig.wrong(c, 3 * kMiB, 5) == 0);
    graph.replay(rig.s);
    CHECK(rig.wrong(c, 3 * kMiB, 5) == 0);
    (void)rig.pools.sleep({rig.id()});
    rig.audit();
    CHECK(rig.taken() == 0);
    (void)rig.pools.wake({rig.id()});
    CHECK(rig.wrong(a, 9 * kMiB, 1) == 0);
  }
  std::uint64_t zeroes() { return rig.wrong(b, 4, 0); }

  SleepRig rig;
  Graph graph;
  void *a, *b, *c;
  std::int64_t reserved;
};

enum class SleepVerb { kSleep, kSleepAfter, kWake };

void runVerb(SleepRig& rig, SleepVerb verb) {
  if (verb == SleepVerb::kSleep) (void)rig.pools.sleep({rig.id()});
  if (verb == SleepVerb::kSleepAfter) (void)rig.pools.sleep({rig.id()}, rig.s);
  if (verb == SleepVerb::kWake) (void)rig.pools.wake({rig.id()});
}

}  // namespace

TEST_CASE("whichever device call of a sleep or a wake fails, nothing is lost",
          "[pools][sleep][pages]") {
  for (const SleepVerb verb : {SleepVerb::kSleep, SleepVerb::kSleepAfter, SleepVerb::kWake}) {
    for (const ErrorKind kind : {ErrorKind::kOutOfMemory, ErrorKind::kOther}) {
      bool met = true;
      for (std::uint64_t nth = 1; met; ++nth) {
        SleepProgram program;
        SleepRig& rig = program.rig;
        if (verb == SleepVerb::kWake) (void)rig.pools.sleep({rig.id()});
        INFO("verb " << int(verb) << ", call " << nth);
        const std::uint64_t before = rig.sim().faults().hits();
        rig.sim().faults().failNthOfAll(nth, kind);
        try {
          runVerb(rig, verb);
          CHECK(rig.pools.isAsleep(rig.id()) == (verb != SleepVerb::kWake));
        } catch (const Error&) {
          CHECK(rig.pools.isAsleep(rig.id()) == (verb == SleepVerb::kWake));
          if (verb != SleepVerb::kWake) CHECK(rig.reservedBy(rig.id()) == program.reserved);
        }
        met = rig.sim().faults().hits() > before;
        rig.sim().faults().clear();
        program.check();
        REQUIRE(nth < 500);
      }
    }
  }
}

TEST_CASE("a device that refuses all calls of a kind ends no sleep and no wake for good",
          "[pools][sleep][pages]") {
  for (const SleepVerb verb : {SleepVerb::kSleep, SleepVerb::kSleepAfter, SleepVerb::kWake}) {
    for (std::size_t call = 0; call < kCallCount; ++call) {
      if (Call(call) == Call::kExchangeCaptureMode) continue;  // nobody could set it right again
      INFO("verb " << int(verb) << ", " << callName(Call(call)));
      SleepProgram program;
      SleepRig& rig = program.rig;
      if (verb == SleepVerb::kWake) (void)rig.pools.sleep({rig.id()});
      rig.sim().faults().failAll(Call(call), ErrorKind::kOther);
      try {
        runVerb(rig, verb);
      } catch (const Error&) {
      }
      rig.sim().faults().clear();
      program.check();
    }
  }
}

}  // namespace cistern::test
