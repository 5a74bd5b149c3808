// Caches that grow by concatenation, as those of generated text do: each step asks for every one
// anew, a little larger, and frees the old one. Blocks of hundreds of KiB to some MiB come and go
// without end, and what one leaves soon serves another, if it is left in one piece.
#include <random>
#include <utility>
#include <vector>

#include "tests/engine/pages/pages_support.hpp"
#include "tests/support/slow_build.hpp"

namespace cistern::test {
namespace {

constexpr int kSteps = kSlowBuild ? 150 : 500, kSequences = 20, kLayers = 16;
constexpr std::uint64_t kSeeds = kSlowBuild ? 6 : 4;
constexpr std::size_t kToken = 4 * kKiB;

/// A sequence's caches, one a layer, of so many tokens.
struct Sequence {
  std::size_t tokens;
  int left;  ///< steps
  std::vector<void*> layers;
};

void step(SimRig& rig, Stream stream, Sequence& sequence) {
  ++sequence.tokens;
  --sequence.left;
  for (void*& layer : sequence.layers) {
    void* const longer = rig.allocator.allocate(sequence.tokens * kToken, stream);
    rig.allocator.free(std::exchange(layer, longer));
  }
}

/// The most that was reserved.
std::uint64_t peakOf(const char* conf, std::uint64_t seed) {
  SimRig rig(conf, simOf(8 * kGiB, 1'000'000));
  const Stream stream = rig.stream();
  std::mt19937_64 random(seed);
  const auto between = [&](int low, int high) {
    return low + int(random() % std::uint64_t(high - low + 1));
  };
  std::vector<Sequence> live;
  for (int i = 0; i < kSteps; ++i) {
    if (live.size() < kSequences && random() % 6 == 0) {
      live.push_back({std::size_t(between(50, 1500)), between(20, 400), {}});
      for (int k = 0; k < kLayers; ++k)
        live.back().layers.push_back(rig.allocator.allocate(live.back().tokens * kToken, stream));
    }
    for (Sequence& sequence : live) step(rig, stream, sequence);
    std::erase_if(live, [&](const Sequence& sequence) {
      if (sequence.left > 0) return false;
      for (void* layer : sequence.layers) rig.allocator.free(layer);
      return true;
    });
  }
  return std::uint64_t(rig.allocator.memoryStats()[Stat::kReservedBytes].peak);
}

}  // namespace

TEST_CASE("caches that grow by concatenation take no more than where no page ever moves",
          "[engine][pages]") {
  std::uint64_t moved = 0, grown = 0;  // of all: one alone is a matter of luck, by some percent
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    moved += peakOf("background_thread:false", seed);
    grown += peakOf("background_thread:false,recycle:off", seed);
  }
  INFO(moved / kMiB << " and " << grown / kMiB << " MiB");
  CHECK(moved <= grown + grown / 50);
}

}  // namespace cistern::test
