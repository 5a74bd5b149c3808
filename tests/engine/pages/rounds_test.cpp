// Programs that repeat themselves come to make no device call (docs/pages.md, "At rest").
#include "allocator/base/sabotage.hpp"
#include "tests/engine/pages/pages_support.hpp"

namespace cistern::test {
namespace {

/// Rounds of the same thousand requests of many sizes, a few of which are made anew in each.
std::vector<std::uint64_t> callsOfRounds(SimRig& rig, std::uint64_t seed, std::size_t keep) {
  const Stream s = rig.stream();
  void* kept = keep ? rig.allocator.allocate(keep, s) : nullptr;
  std::vector<std::uint64_t> calls;
  for (int round = 0; round < 8; ++round) {
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

/// Steps that are the same, of a program as people write them: some tensors of a step live until
/// their successors are made.
struct Loop {
  explicit Loop(std::uint64_t seed, const std::string& conf = "")
      : rig("background_thread:false" + conf, simOf(16 * kGiB, 1'000'000)), stream(rig.stream()) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < 90; ++i) {
      // Of four sizes each, so that blocks compete for places.
      const std::uint64_t size = (std::uint64_t{2} << random() % 5) * kMiB + random() % 4 * 100'000;
      tensors.push_back({size, int(random() % 12) + 1, i % 23 == 0});
    }
    held.resize(tensors.size());
  }
  /// The calls of one step.
  std::uint64_t step() {
    const std::uint64_t before = mappingCalls(rig.sim());
    std::vector<void*> live(tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const Tensor& made = tensors[i];
      live[i] = rig.allocator.allocate(made.bytes, stream);
      rig.touch(stream, live[i]);
      if (made.survives) rig.allocator.free(std::exchange(held[i], std::exchange(live[i], {})));
      for (std::size_t old = 0; old <= i; ++old) {
        if (live[old] && old + std::size_t(tensors[old].lives) == i)
          rig.allocator.free(std::exchange(live[old], nullptr));
      }
    }
    for (void* block : live) rig.allocator.free(block);
    return mappingCalls(rig.sim()) - before;
  }
  /// The last of so many steps that made a call.
  int lastWithCalls(int steps) {
    int last = 0;
    for (int i = 1; i <= steps; ++i) last = step() > 0 ? i : last;
    checkAtRest(rig);
    return last;
  }
  ~Loop() {
    for (void* block : held) rig.allocator.free(block);
  }

  struct Tensor {
    std::uint64_t bytes;
    int lives;      ///< until so many further ones are made
    bool survives;  ///< until its successor is made
  };
  SimRig rig;
  Stream stream;
  std::vector<Tensor> tensors;
  std::vector<void*> held;
};

/// How many of ten such programs make a call after step 20.
int restless() {
  int count = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) count += Loop(seed).lastWithCalls(40) > 20;
  return count;
}

}  // namespace

TEST_CASE("a program that repeats itself comes to make no mapping calls", "[engine][pages][long]") {
  for (const std::size_t keep : {std::size_t{0}, 300 * kMiB}) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      SimRig rig("background_thread:false", simOf(16 * kGiB, 1'000'000));
      const std::vector<std::uint64_t> calls = callsOfRounds(rig, seed, keep);
      std::string said;
      for (const std::uint64_t n : calls) said += std::to_string(n) + " ";
      INFO("seed " << seed << ", kept " << keep << ": " << said);
      CHECK(calls[0] > 100);
      CHECK(calls[4] <= calls[0] / 8);
      CHECK(calls[7] == 0);
    }
  }
}

TEST_CASE("so does one whose tensors outlive their successors", "[engine][pages][long]") {
  CHECK(restless() <= 2);
}

#if defined(CISTERN_AUDIT_BUILD)

TEST_CASE("at the places of the round before such programs do not come to rest",
          "[engine][pages][long]") {
  broken_rules = unsigned(Rule::kPlaces);
  CHECK(restless() >= 5);
  broken_rules = 0;
}

#endif

}  // namespace cistern::test
