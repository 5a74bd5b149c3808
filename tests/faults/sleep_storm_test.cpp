#include "tests/faults/sleep_storm.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/slow_build.hpp"

namespace cistern::test {

#if defined(CISTERN_COUNTS_HOST_MEMORY)
TEST_CASE("in a storm of sleep, wake and all else nothing is lost", "[faults][sleep][one-thread]") {
  constexpr int kSteps = kSlowBuild ? 2'000 : 40'000;
  struct Run {
    std::uint64_t seed;
    bool background;
    int steps;
  };
  std::map<std::string, int> counts;
  for (const Run& run : {Run{1, false, kSteps}, Run{2, false, kSteps}, Run{3, true, kSteps / 2}}) {
    INFO("seed " << run.seed);
    SleepStorm storm(run.seed, run.background);
    for (int i = 0; i < run.steps; ++i) storm.step();
    storm.finish();
    for (const auto& [name, count] : storm.counts) counts[name] += count;
  }
  for (const auto& [name, count] : counts) UNSCOPED_INFO(name << ": " << count);
  for (const char* name : {"sleep", "wake", "stayed", "fork", "replay", "freed result after wake",
                           "free while asleep", "reset while asleep", "retire while asleep",
                           "bad_alloc", "host shortage", "out of memory: wake", "device failure",
                           "pool error: allocate", "pool error: capture", "graph error: replay"}) {
    INFO(name);
    CHECK(counts[name] > 0);
  }
}
#endif

}  // namespace cistern::test
