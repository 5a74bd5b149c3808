#include "tests/faults/sleep_storm.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/slow_build.hpp"

namespace cistern::test {
namespace {

using Counts = std::map<std::string, int>;

void run(const SleepStorm::Settings& settings, int steps, Counts& counts) {
  INFO("seed " << settings.seed);
  SleepStorm storm(settings);
  for (int i = 0; i < steps; ++i) storm.step();
  storm.finish();
  for (const auto& [name, count] : storm.counts) counts[name] += count;
}

void requireEach(Counts& counts, std::initializer_list<const char*> names) {
  for (const auto& [name, count] : counts) UNSCOPED_INFO(name << ": " << count);
  for (const char* name : names) {
    INFO(name);
    CHECK(counts[name] > 0);
  }
}

}  // namespace

TEST_CASE("in a storm of sleep, wake and all else nothing is lost", "[faults][sleep][long]") {
  Counts counts;
  for (const std::uint64_t seed : {1u, 2u}) run({seed}, kSlowBuild ? 5'000 : 40'000, counts);
#if defined(CISTERN_COUNTS_HOST_MEMORY)
  CHECK(counts["bad_alloc"] > 0);
#endif
  requireEach(counts, {"sleep", "wake", "stayed", "fork", "replay", "freed result after wake",
                       "free while asleep", "allocate in host memory", "pool error: sleep",
                       "pool error: export", "device failure"});
  if (kSlowBuild) return;  // fewer steps bring less about
  requireEach(counts,
              {"reset while asleep", "retire while asleep", "host shortage", "out of memory: wake",
               "pool error: allocate", "pool error: capture", "graph error: replay"});
}

TEST_CASE("so it is beside the thread that gives memory back in the background",
          "[faults][sleep]") {
  Counts counts;
  run({3, true}, kSlowBuild ? 3'000 : 20'000, counts);
  requireEach(counts, {"sleep", "wake", "stayed", "free while asleep", "device failure"});
}

TEST_CASE("so it is with a smaller device and host memory for the rest", "[faults][overflow]") {
  Counts counts;
  for (const std::uint64_t seed : {4u, 5u})
    run({seed, false, true}, kSlowBuild ? 2'000 : 20'000, counts);
  run({6, true, true}, kSlowBuild ? 1'000 : 10'000, counts);
  requireEach(counts, {"sleep", "wake", "stayed", "replay", "device failure", "on the host",
                       "overflow on", "overflow off", "host admits less", "pool error: export",
                       "out of memory: allocate"});
  if (!kSlowBuild) requireEach(counts, {"pass on", "result after wake"});
}

}  // namespace cistern::test
