// Pages that were made late are parked between rounds: nothing is lost by it, and rounds repeat.
#include "tests/engine/pages/pages_support.hpp"

namespace cistern::test {
namespace {

/// A program whose second round needs 16 MiB more than its first, and frees everything in between.
/// The device lags, so that pages that move leave mappings behind.
struct Late {
  Late() : rig("recycle:eager,background_thread:false", simOf(4 * kGiB, 1'000'000)) {
    round(0);
    round(16 * kMiB);
    all = reservedOf(rig.allocator);
    CHECK(all == mib(514 + 16));
  }
  void round(std::size_t more) {
    void* low = get(256 * kMiB);
    void* held = get(2 * kMiB);
    void* high = get(256 * kMiB);
    rig.allocator.free(low);
    rig.allocator.free(high);
    void* both = get(512 * kMiB);
    void* last = more ? get(more) : nullptr;
    for (void* block : {both, held, last}) rig.allocator.free(block);
  }
  void* get(std::size_t bytes, Stream s) {
    void* block = rig.allocator.allocate(bytes, s);
    rig.touch(s, block);
    return block;
  }
  void* get(std::size_t bytes) { return get(bytes, stream); }

  SimRig rig;
  Stream stream = rig.stream();
  std::int64_t all = 0;
};

/// Rounds of the same thousand requests of many sizes, a few of which are made anew in each.
std::vector<std::uint64_t> callsOfRounds(SimRig& rig, std::uint64_t seed, std::size_t keep) {
  const Stream s = rig.stream();
  void* kept = keep ? rig.allocator.allocate(keep, s) : nullptr;
  std::vector<std::uint64_t> calls;
  for (int round = 0; round < 5; ++round) {
    const std::uint64_t before = mappingCalls(rig.sim());
    std::mt19937_64 random(seed);
    std::vector<void*> live;
    for (int step = 0; step < 1000; ++step) {
      const std::uint64_t draw = random();
      if (draw % 5 < 3 && live.size() < 60) {
        live.push_back(rig.allocator.allocate((draw >> 8) % (40 * kMiB) + 1, s));
        rig.touch(s, live.back());
      } else if (!live.empty()) {
        std::swap(live[(draw >> 8) % live.size()], live.back());
        rig.allocator.free(live.back());
        live.pop_back();
      }
    }
    for (void* block : live) rig.allocator.free(block);
    calls.push_back(mappingCalls(rig.sim()) - before);
  }
  rig.allocator.free(kept);
  return calls;
}

}  // namespace

TEST_CASE("what is parked counts as free and goes back to the device", "[engine][pages]") {
  Late t;
  CHECK(t.rig.allocator.cacheInfo().free_bytes == std::uint64_t(t.all));
  checkAtRest(t.rig);
  t.rig.sim().synchronizeDevice().orThrow();
  t.rig.allocator.emptyCache();
  CHECK(reservedOf(t.rig.allocator) == 0);
  checkAtRest(t.rig);
}

TEST_CASE("what is parked serves another program before anything is made", "[engine][pages]") {
  Late t;
  const PageCounts before = pagesOf(t.rig.allocator);
  std::vector<void*> blocks{t.get(512 * kMiB), t.get(2 * kMiB)};
  for (int i = 0; i < 4; ++i) blocks.push_back(t.get(4 * kMiB));
  CHECK(reservedOf(t.rig.allocator) == t.all);
  CHECK(pagesOf(t.rig.allocator).created == before.created);
  for (void* block : blocks) t.rig.allocator.free(block);
  checkAtRest(t.rig);
}

TEST_CASE("another stream gets what is parked as well", "[engine][pages]") {
  Late t;
  t.rig.allocator.setLimit(std::uint64_t(t.all));
  const Stream other = t.rig.stream();
  t.rig.sim().synchronizeDevice().orThrow();
  void* block = t.get(std::size_t(t.all), other);
  CHECK(reservedOf(t.rig.allocator) == t.all);
  t.rig.allocator.free(block);
  checkAtRest(t.rig);
}

TEST_CASE("a limit below what is there takes what is parked first or last, but takes it",
          "[engine][pages]") {
  Late t;
  t.rig.sim().synchronizeDevice().orThrow();
  t.rig.allocator.setLimit(64 * kMiB);
  const Stream other = t.rig.stream();
  void* block = t.get(64 * kMiB, other);
  t.rig.allocator.free(block);
  checkAtRest(t.rig);
}

TEST_CASE("a program that repeats itself comes to make no mapping calls", "[engine][pages][long]") {
  for (const std::size_t keep : {std::size_t{0}, 300 * kMiB}) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      SimRig rig("background_thread:false", simOf(16 * kGiB, 1'000'000));
      const std::vector<std::uint64_t> calls = callsOfRounds(rig, seed, keep);
      INFO("seed " << seed << ", kept " << keep << ": " << calls[0] << " " << calls[1] << " "
                   << calls[2] << " " << calls[3] << " " << calls[4]);
      CHECK(calls[0] > 100);
      if (keep == 0) CHECK(calls[2] <= calls[0] / 10);  // what is low water is known from the start
      CHECK(calls[3] <= calls[0] / 20);
      CHECK(calls[4] == 0);
    }
  }
}

}  // namespace cistern::test
