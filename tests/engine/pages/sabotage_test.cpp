// The allocator with one of its rules broken on purpose: the race detector must say so. In the
// audit build only (allocator/base/sabotage.hpp).
#include "allocator/base/sabotage.hpp"

#include "tests/engine/pages/pages_support.hpp"

#if defined(CISTERN_AUDIT_BUILD)

namespace cistern::test {
namespace {

/// A rule is broken while it lives.
struct Broken {
  explicit Broken(Rule rule) { broken_rules = unsigned(rule); }
  ~Broken() { broken_rules = 0; }
};

using Kind = sim::RaceReport::Kind;

/// What the detector found; forgets it, so that the rig may end in peace.
std::vector<Kind> takeRaces(SimRig& rig) {
  std::vector<Kind> kinds;
  for (const sim::RaceReport& report : rig.sim().races()) kinds.push_back(report.kind);
  rig.sim().clearRaces();
  return kinds;
}

}  // namespace

TEST_CASE("a stale mapping that went too early is found", "[engine][pages]") {
  SimRig rig("recycle:eager,background_thread:false", simOf(kGiB, 1'000'000));
  const auto moveOn = [&] {  // pages of the small blocks move to the large one, and back again
    void* blocks[4];
    for (void*& block : blocks) rig.touch({}, block = rig.allocator.allocate(20 * kMiB));
    for (void* block : blocks) rig.allocator.free(block);
    void* large = rig.allocator.allocate(70 * kMiB);
    rig.touch({}, large);
    rig.allocator.free(large);
  };
  moveOn();
  rig.allocator.emptyCache();
  CHECK(takeRaces(rig).empty());  // all is in use yet: nothing went
  {
    const Broken rule(Rule::kCompletion);
    moveOn();
    rig.allocator.emptyCache();
  }
  const std::vector<Kind> found = takeRaces(rig);
  REQUIRE_FALSE(found.empty());
  CHECK(found.front() == Kind::kUnmapInUse);
}

TEST_CASE("pages taken from another stream before its work was complete are found",
          "[engine][pages]") {
  for (Rule rule : {Rule::kCompletion, Rule::kOrder}) {
    SimRig rig("recycle:eager,background_thread:false,limit:64M", simOf(kGiB, 1'000'000));
    const Stream first = rig.stream(), second = rig.stream();
    const auto handOver = [&] {
      void* block = rig.allocator.allocate(60 * kMiB, first);
      rig.touch(first, block);
      rig.allocator.free(block);
      void* other = rig.allocator.allocate(50 * kMiB, second);
      rig.touch(second, other);
      rig.allocator.free(other);
      rig.sim().synchronizeDevice().orThrow();
    };
    handOver();
    CHECK(takeRaces(rig).empty());
    {
      const Broken broken_rule(rule);
      handOver();
    }
    const std::vector<Kind> found = takeRaces(rig);
    REQUIRE_FALSE(found.empty());
    CHECK(found.front() == Kind::kRace);
  }
}

}  // namespace cistern::test

#endif
