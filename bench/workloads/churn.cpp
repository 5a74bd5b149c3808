#include <cmath>
#include <random>
#include <span>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "bench/workloads/workloads.hpp"

namespace cistern::bench {
namespace {

// Long enough that a million live blocks are spread over, short enough to be read as a stream.
constexpr std::size_t kSteps = 1 << 20;
// The mean of the sizes, (max - min) / ln(max / min), rounded up.
constexpr std::uint64_t kMeanBytes = 138 * kKiB;

/// What step i does; taken modulo kSteps.
struct ChurnStep {
  std::uint32_t bytes;  ///< of the block that it allocates
  std::uint32_t place;  ///< where, as a fraction of the live blocks in units of 2^-32
};

std::span<const ChurnStep> churnSteps() {
  static const std::vector<ChurnStep> steps = [] {
    std::mt19937_64 random(20'250'101);
    std::uniform_real_distribution<double> doublings(0, 11);
    std::vector<ChurnStep> made(kSteps);
    for (auto& step : made) {
      step = {std::uint32_t(512 * std::exp2(doublings(random))), std::uint32_t(random() >> 32)};
    }
    return made;
  }();
  return steps;
}

class ChurnLane final : public Lane {
 public:
  ChurnLane(Peer& peer, Stream stream, std::size_t live)
      : peer_(peer), stream_(stream), steps_(churnSteps()), blocks_(live) {
    for (auto& block : blocks_) block = peer_.allocate(next().bytes, stream_);
  }
  ~ChurnLane() override {
    for (void* block : blocks_) {
      if (block != nullptr) peer_.free(block, stream_);
    }
  }

  bool run(std::size_t steps) override {
    for (std::size_t i = 0; i < steps; ++i) {
      // The table of a million blocks is this program's: that it is not in the host's cache is
      // nobody's merit or fault.
      __builtin_prefetch(&placeOf(steps_[(at_ + kAhead) % kSteps]), 1);
      const ChurnStep& step = next();
      void*& block = placeOf(step);
      if (block == nullptr) return false;
      peer_.free(block, stream_);
      block = peer_.allocate(step.bytes, stream_);
    }
    return true;
  }

 private:
  static constexpr std::size_t kAhead = 8;
  const ChurnStep& next() { return steps_[at_++ % kSteps]; }
  void*& placeOf(const ChurnStep& step) {
    return blocks_[std::uint64_t(step.place) * blocks_.size() >> 32];
  }

  Peer& peer_;
  Stream stream_;
  std::span<const ChurnStep> steps_;
  std::size_t at_ = 0;
  std::vector<void*> blocks_;
};

Case churnCase(std::size_t live) {
  return {.name = fmt::format("churn/{}", live),
          .blocks = live,
          .bytes = live * kMeanBytes,
          .lane = [live](Peer& peer, Stream stream) {
            return std::make_unique<ChurnLane>(peer, stream, live);
          }};
}

}  // namespace

std::vector<Case> churnCases() {
  std::vector<Case> cases;
  for (std::size_t live : {10, 100, 1'000, 10'000, 100'000, 1'000'000}) {
    cases.push_back(churnCase(live));
  }
  return cases;
}

}  // namespace cistern::bench
