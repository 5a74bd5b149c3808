// Any one request for host memory, and any one call to the device, may be refused, wherever a
// program is: no verb ends the process, one that fails changes nothing, frees never fail, and in
// the end all memory goes back.
#include <memory>
#include <vector>

#include "tests/faults/worker.hpp"
#include "tests/support/slow_build.hpp"
#include "tests/support/threads.hpp"

namespace cistern::test {
namespace {

/// A slow build takes every third place in a program, others for each configuration. The release
/// build takes all.
constexpr std::uint64_t kStride = kSlowBuild ? 3 : 1;
#if defined(CISTERN_COUNTS_HOST_MEMORY)
/// The same for requests for host memory. Audits make most of those that there are.
#if defined(CISTERN_AUDIT_BUILD)
constexpr std::uint64_t kStrideOfRequests = 61;
#else
constexpr std::uint64_t kStrideOfRequests = kStride;
#endif
#endif

constexpr const char* kBackings[] = {"backing:pages", "backing:segments",
                                     "backing:pages,recycle:eager"};

}  // namespace

#if defined(CISTERN_COUNTS_HOST_MEMORY)

TEST_CASE("any request for host memory may be refused, and all that follow it", "[faults][long]") {
  const std::uint64_t which = GENERATE(range(0u, 3u));
  const bool lasting = GENERATE(false, true);
  const char* const backing = kBackings[which];
  std::uint64_t runs = 0;
  for (const Scenario& scenario : kScenarios) {
    bool any = true;
    std::uint64_t nth = 1 + (which * 2 + lasting) % kStrideOfRequests;
    for (; any; nth += kStrideOfRequests, ++runs) {
      INFO(backing << ", " << scenario.name << ", request " << nth << (lasting ? " and on" : ""));
      FaultRig rig(backing);
      {
        Worker worker(rig, {nth, lasting});
        scenario.run(worker);
        CHECK(worker.asExpected());
        any = worker.refused();
      }
      rig.checkAtRest();
    }
  }
  CHECK(runs > 300 / kStrideOfRequests);
}

TEST_CASE("what the device will not have back at that moment goes back later", "[faults][long]") {
  const char* const backing = GENERATE("backing:pages", "backing:segments");
  bool any = true;
  for (std::uint64_t nth = 1; any; ++nth) {
    INFO(backing << ", request " << nth);
    FaultRig rig(backing);
    {
      Worker worker(rig, {nth, false});
      for (const Call back : {Call::kFree, Call::kReleasePage, Call::kUnmap})
        rig.sim().faults().failAll(back, ErrorKind::kOther);
      (void)worker.allocate(kKiB, worker.s);
      (void)worker.allocate(5 * kMiB, worker.s);
      any = worker.refused();
      rig.sim().faults().clear();
    }
    rig.checkAtRest();
  }
}

#endif

TEST_CASE("any one device call may be refused", "[faults][long]") {
  const std::uint64_t which = GENERATE(range(0u, 3u));
  const ErrorKind kind = GENERATE(ErrorKind::kOutOfMemory, ErrorKind::kOther);
  const char* const backing = kBackings[which];
  std::uint64_t runs = 0;
  for (const Scenario& scenario : kScenarios) {
    std::uint64_t refused = 1 + (which + (kind == ErrorKind::kOther)) % kStride;
    for (bool any = true; any; refused += kStride, ++runs) {
      INFO(backing << ", " << scenario.name << ", call " << refused << ", kind " << int(kind));
      FaultRig rig(backing);
      {
        Worker worker(rig, {});
        rig.sim().faults().failNthOfAll(refused, kind);
        scenario.run(worker);
        CHECK(worker.asExpected());
        any = rig.sim().faults().hits() > 0;
        rig.sim().faults().clear();
      }
      rig.checkAtRest();
    }
  }
  CHECK(runs > 300 / kStride);
}

// As of a driver whose context is lost: it refuses for good. Then it is there again.
TEST_CASE("all device calls of a kind may be refused", "[faults][long]") {
  const std::uint64_t which = GENERATE(range(0u, 3u));
  const bool used_before = GENERATE(false, true);
  for (const Scenario& scenario : kScenarios) {
    for (std::size_t call = which % kStride; call < kCallCount; call += kStride) {
      if (Call(call) == Call::kExchangeCaptureMode) continue;  // nobody could set it right again
      INFO(kBackings[which] << ", " << scenario.name << ", " << callName(Call(call)));
      FaultRig rig(kBackings[which]);
      {
        Worker worker(rig, {});
        if (used_before) scenario.run(worker);
        rig.sim().faults().failAll(Call(call), ErrorKind::kOther);
        scenario.run(worker);
        CHECK(worker.asExpected());
        rig.sim().faults().clear();
        scenario.run(worker);
      }
      rig.checkAtRest();
    }
  }
}

// Each thread has a request of its own refused, at other places each time; and now and then a
// device call of anyone's.
TEST_CASE("host memory and device calls may be refused while several threads work", "[faults]") {
  const char* const backing = GENERATE(from_range(std::begin(kBackings), std::end(kBackings)));
  constexpr std::uint64_t kRounds = 30, kThreads = 3;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    INFO(backing << ", round " << round);
    FaultRig rig(backing);
    {
      std::vector<std::unique_ptr<Worker>> workers;
      for (std::uint64_t i = 0; i < kThreads; ++i) {
        const Refusal refusal{1 + round * 17 + i * 5, round % 3 == 2};
        workers.push_back(std::make_unique<Worker>(rig, refusal));
        workers.back()->alone = false;
      }
      if (round % 2 == 1) rig.sim().faults().failRandomly(0.002, round, ErrorKind::kOther);
      onThreads(kThreads, [&](std::size_t i) {
        for (std::size_t k = 0; k < kScenarios.size(); ++k)
          kScenarios[(i * 3 + k) % kScenarios.size()].run(*workers[i]);
      });
      rig.sim().faults().clear();
      for (const auto& worker : workers) CHECK(worker->asExpected());
    }
    rig.checkAtRest();
  }
}

}  // namespace cistern::test
