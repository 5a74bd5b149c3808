// Any one request for host memory, and any one call to the device, may be refused, wherever a
// program is: no verb ends the process, one that fails changes nothing, frees never fail, and in
// the end all memory goes back.
#include "tests/faults/worker.hpp"

namespace cistern::test {
namespace {

constexpr const char* kBackings[] = {"backing:pages", "backing:segments",
                                     "backing:pages,poll_interval:1,recycle:eager",
                                     "backing:segments,poll_interval:1"};

}  // namespace

// The audits of the audit build need host memory by themselves.
#if defined(CISTERN_COUNTS_HOST_MEMORY) && !defined(CISTERN_AUDIT_BUILD)

TEST_CASE("any one request for host memory may be refused", "[faults][one-thread]") {
  const char* const backing = GENERATE(from_range(std::begin(kBackings), std::end(kBackings)));
  std::uint64_t runs = 0;
  for (const Scenario& scenario : kScenarios) {
    std::uint64_t refused = 1;
    for (bool any = true; any; ++refused) {
      INFO(backing << ", " << scenario.name << ", request " << refused);
      FaultRig rig(backing);
      {
        Worker worker(rig, refused);
        scenario.run(worker);
        CHECK(worker.asExpected());
        any = worker.requests() >= refused;
      }
      rig.checkAtRest();
    }
    runs += refused;
  }
  CHECK(runs > 300);
}

#endif

TEST_CASE("any one device call may be refused", "[faults][one-thread]") {
  const char* const backing = GENERATE(from_range(std::begin(kBackings), std::end(kBackings)));
  const ErrorKind kind = GENERATE(ErrorKind::kOutOfMemory, ErrorKind::kOther);
  std::uint64_t runs = 0;
  for (const Scenario& scenario : kScenarios) {
    std::uint64_t refused = 1;
    for (bool any = true; any; ++refused) {
      INFO(backing << ", " << scenario.name << ", call " << refused << ", kind " << int(kind));
      FaultRig rig(backing);
      {
        Worker worker(rig, 0);
        rig.sim().faults().failNthOfAll(refused, kind);
        scenario.run(worker);
        CHECK(worker.asExpected());
        any = rig.sim().faults().hits() > 0;
        rig.sim().faults().clear();
      }
      rig.checkAtRest();
    }
    runs += refused;
  }
  CHECK(runs > 300);
}

}  // namespace cistern::test
