// The workload of RMM's benchmark random_allocations, drawn in advance.
#include <random>
#include <utility>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "bench/workloads/workloads.hpp"

namespace cistern::bench {
namespace {

constexpr std::uint64_t kMostInUse = 16'000 * kMiB;
constexpr int kAllocatePercent = 73;

struct MixStep {
  std::uint64_t bytes;  ///< to allocate in `place`, or 0: free what is there
  std::size_t place;
};

struct Mix {
  std::vector<MixStep> steps;
  std::size_t places = 0;
};

/// Draws a Mix, following which blocks are live.
class MixMaker {
 public:
  MixMaker(std::size_t count, std::uint64_t most) : count_(count), size_(1, most) {}

  Mix make() {
    for (std::size_t i = 0; i < 2 * count_; ++i) step();
    while (!live_.empty()) freeRandom();
    return std::move(mix_);
  }

 private:
  struct Block {
    std::uint64_t bytes;
    std::size_t place;
  };

  void step() {
    const std::uint64_t bytes = size_(random_);
    const bool wanted = percent_(random_) < kAllocatePercent;
    const bool room = live_.size() < count_ && in_use_ + bytes < kMostInUse;
    if (live_.empty() || (wanted && room)) return allocate(bytes);
    freeRandom();
  }

  void allocate(std::uint64_t bytes) {
    if (vacant_.empty()) vacant_.push_back(mix_.places++);
    live_.push_back({bytes, vacant_.back()});
    vacant_.pop_back();
    in_use_ += bytes;
    mix_.steps.push_back({bytes, live_.back().place});
  }

  void freeRandom() {
    std::uniform_int_distribution<std::size_t> any(0, live_.size() - 1);
    std::swap(live_[any(random_)], live_.back());
    mix_.steps.push_back({0, live_.back().place});
    vacant_.push_back(live_.back().place);
    in_use_ -= live_.back().bytes;
    live_.pop_back();
  }

  std::size_t count_;
  std::mt19937_64 random_{20'250'102};
  std::uniform_int_distribution<std::uint64_t> size_;
  std::uniform_int_distribution<int> percent_{0, 99};
  std::uint64_t in_use_ = 0;
  std::vector<Block> live_;
  std::vector<std::size_t> vacant_;
  Mix mix_;
};

class MixLane final : public Lane {
 public:
  MixLane(Peer& peer, Stream stream, std::shared_ptr<const Mix> mix)
      : peer_(peer), stream_(stream), mix_(std::move(mix)), blocks_(mix_->places) {}
  ~MixLane() override {
    for (void* block : blocks_) release(block);
  }

  /// A pass over the whole mix: `steps` is its length.
  bool run(std::size_t /*steps*/) override {
    for (const MixStep& step : mix_->steps) {
      void*& block = blocks_[step.place];
      if (step.bytes == 0) {
        release(block);
      } else if (block = peer_.allocate(step.bytes, stream_); block == nullptr) {
        return false;
      }
    }
    return true;
  }

 private:
  void release(void*& block) {
    if (block != nullptr) peer_.free(std::exchange(block, nullptr), stream_);
  }

  Peer& peer_;
  Stream stream_;
  std::shared_ptr<const Mix> mix_;
  std::vector<void*> blocks_;
};

Case randomCase(std::size_t count, std::uint64_t most) {
  auto mix = std::make_shared<const Mix>(MixMaker(count, most).make());
  return {.name = fmt::format("random/{}/{}MiB", count, most / kMiB),
          .blocks = mix->places,
          .bytes = kMostInUse,
          .largest = most,
          .batch = mix->steps.size(),
          .whole_batches = true,
          .lane = [mix](Peer& peer, Stream stream) {
            return std::make_unique<MixLane>(peer, stream, mix);
          }};
}

}  // namespace

std::vector<Case> randomCases() {
  std::vector<Case> cases;
  for (std::size_t count : {1'000, 10'000, 100'000}) {
    for (std::uint64_t most : {1, 4, 64, 256, 1024, 4096}) {
      cases.push_back(randomCase(count, most * kMiB));
    }
  }
  return cases;
}

}  // namespace cistern::bench
