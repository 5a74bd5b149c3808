// A program that repeats its step on a device that is too small comes to rest, as elsewhere: pages
// are where the next step needs them.
#include <random>

#include "tests/pools/overflow_support.hpp"

namespace cistern::test {
namespace {

/// Training in small: weights that stay, layers whose outputs live until the backward pass,
/// workspaces, and blocks at the peak that are much larger than the rest.
class TrainingSteps {
 public:
  TrainingSteps(unsigned seed, PoolRig& rig) : rig_(rig), stream_(rig.stream()) {
    std::mt19937 random(seed);
    const auto between = [&](unsigned least, unsigned most) {
      return least + unsigned(random() % (most - least + 1));
    };
    const std::size_t unit = between(1, 6) * 8 * kMiB + between(0, 3) * 512;
    for (unsigned i = between(4, 12); i > 0; --i) {
      layers_.push_back({unit * between(1, 8), unit * between(1, 5), unit * between(1, 6)});
      weights_.push_back(rig.allocate(unit * between(1, 3), stream_));
    }
    for (unsigned i = between(1, 3); i > 0; --i) largest_.push_back(unit * between(8, 40));
  }
  ~TrainingSteps() {
    for (void* block : weights_) rig_.free(block);
  }
  TrainingSteps(const TrainingSteps&) = delete;
  TrainingSteps& operator=(const TrainingSteps&) = delete;

  void one() {
    std::vector<void*> kept;
    for (const Layer& layer : layers_) {
      void* const workspace = rig_.allocate(layer.workspace, stream_);
      kept.push_back(rig_.allocate(layer.output, stream_));
      rig_.free(workspace);
      kept.push_back(rig_.allocate(layer.small, stream_));
    }
    std::vector<void*> peak;
    for (const std::size_t bytes : largest_) peak.push_back(rig_.allocate(bytes, stream_));
    for (void* block : peak) rig_.free(block);
    for (std::size_t i = kept.size(); i-- > 0;) {
      void* const gradient = rig_.allocate(layers_[i / 2].workspace, stream_);
      rig_.free(kept[i]);
      rig_.free(gradient);
    }
  }

 private:
  struct Layer {
    std::size_t output, small, workspace;
  };
  PoolRig& rig_;
  const Stream stream_;
  std::vector<Layer> layers_;
  std::vector<std::size_t> largest_;
  std::vector<void*> weights_;
};

/// The calls that make, move or give back memory, or wait, so far.
std::uint64_t callsFor(PoolRig& rig) {
  constexpr Call kCalls[] = {Call::kCreatePage, Call::kCreateHostPage, Call::kReleasePage,
                             Call::kMap,        Call::kUnmap,          Call::kSynchronizeDevice};
  std::uint64_t sum = 0;
  for (const Call call : kCalls) sum += rig.sim().callCounts()[std::size_t(call)];
  return sum;
}

/// What the last of many steps take in all.
std::uint64_t callsOfLast(PoolRig& rig, unsigned seed) {
  constexpr int kSteps = 16, kLast = 4;
  TrainingSteps steps(seed, rig);
  for (int i = 0; i < kSteps - kLast; ++i) steps.one();
  const std::uint64_t before = callsFor(rig);
  for (int i = 0; i < kLast; ++i) steps.one();
  return callsFor(rig) - before;
}

}  // namespace

// Where requests fall beside pages can keep a program from rest, on a large device too.
TEST_CASE("steps that come to rest on a large device do so on one that is too small",
          "[pools][overflow][pages]") {
  unsigned programs = 0, rested = 0;
  for (unsigned seed = 0; seed < 24; ++seed) {
    PoolRig large("", simOf(256 * kGiB));
    if (callsOfLast(large, seed) > 0) continue;
    const std::uint64_t need = large.allocator.takePeak();
    for (const unsigned percent : {97u, 90u, 80u}) {
      OverflowRig small(256 * kGiB, 256 * kGiB, 512 * kGiB);
      small.allocator.setLimit(need / 100 * percent);
      ++programs;
      rested += callsOfLast(small, seed) == 0 ? 1 : 0;
      CHECK(small.allocator.overflow().handed_out > 0);
      small.allocator.audit();
    }
  }
  CHECK(programs > 50);
  CHECK(rested * 10 >= programs * 9);
}

// As of a driver whose context is lost.
TEST_CASE("overflow goes on when a device has refused all calls of a kind",
          "[pools][overflow][pages]") {
  for (std::size_t call = 0; call < kCallCount; ++call) {
    if (Call(call) == Call::kExchangeCaptureMode) continue;  // nobody could set it right again
    INFO(callName(Call(call)));
    OverflowRig rig;
    const Stream s = rig.stream();
    void* const first = rig.filled(60 * kMiB, s, 1);
    void* const over = rig.filled(30 * kMiB, s, 2);
    std::vector<void*> more;
    const auto attempt = [&](std::size_t bytes) {
      try {
        more.push_back(rig.allocate(bytes, s));
      } catch (const Error&) {
      }
    };
    rig.sim().faults().failAll(Call(call), ErrorKind::kOther);
    for (const std::size_t bytes : {20 * kMiB, std::size_t{2000}, 500 * kMiB}) attempt(bytes);
    rig.free(first);
    attempt(70 * kMiB);
    rig.allocator.emptyCache();
    rig.sim().faults().clear();
    CHECK(rig.wrong(over, 30 * kMiB, s, 2) == 0);
    for (void* block : more) rig.free(block);
    rig.free(over);
    rig.finish();
    rig.allocator.emptyCache();
    CHECK(rig.inHostNow() == 0);
    CHECK(takenOf(rig.sim()) == 0);
  }
}

}  // namespace cistern::test
