#include <array>

#include <fmt/format.h>

#include "bench/workloads/workloads.hpp"

namespace cistern::bench {
namespace {

constexpr std::size_t kRing = 16;
constexpr std::size_t kSizes = 9;  // 512 B to 128 KiB

// Threads do not write to each other's cache lines, nor to pairs of lines that are fetched
// together: what is measured is the allocator.
class alignas(128) RingLane final : public Lane {
 public:
  RingLane(Peer& peer, Stream stream) : peer_(peer), stream_(stream) {}
  ~RingLane() override { empty(); }

  bool run(std::size_t steps) override {
    for (std::size_t i = 0; i < steps; ++i, ++at_) {
      void*& block = ring_[at_ % kRing];
      if (block != nullptr) peer_.free(block, stream_);
      block = peer_.allocate(std::size_t(512) << (at_ % kSizes), stream_);
      if (block == nullptr) return false;
    }
    return true;
  }

  // Each measurement has threads of its own, and an allocator may keep things by thread.
  void leave() override { empty(); }

 private:
  void empty() {
    for (void*& block : ring_) {
      if (block != nullptr) peer_.free(block, stream_);
      block = nullptr;
    }
  }

  Peer& peer_;
  Stream stream_;
  std::size_t at_ = 0;
  std::array<void*, kRing> ring_{};
};

Case threadCase(const char* name, int threads, bool own_streams) {
  return {
      .name = fmt::format("{}/{}", name, threads),
      .blocks = kRing * std::uint64_t(threads),
      .threads = threads,
      .own_streams = own_streams,
      .lane = [](Peer& peer, Stream stream) { return std::make_unique<RingLane>(peer, stream); }};
}

}  // namespace

std::vector<Case> threadCases() {
  std::vector<Case> cases;
  for (int threads : {1, 4, 8, 16}) cases.push_back(threadCase("threads", threads, true));
  for (int threads : {4, 16}) cases.push_back(threadCase("threads_one_stream", threads, false));
  return cases;
}

}  // namespace cistern::bench
