// What the tests of loose peaks share: how hits hold another thread still, again and again.
#pragma once

#include <string>
#include <vector>

#include "tests/engine/thread_cache_support.hpp"

namespace cistern::test {

/// Two threads, with memory on streams of their own, and more of it on a third for hits that are
/// new peaks. No stream takes another's.
class LooseRig : public SimRig {
 public:
  explicit LooseRig(const std::string& conf = "thread_cache:2M")
      : SimRig("background_thread:false,cross_stream_reuse:false," + conf, roomySim()) {
    for (const Stream one : {own, others, high}) warm(one);
    other.keep(allocator, 1, kKiB, others);
    allocator.resetPeakStats();
  }
  ~LooseRig() { letGo(); }

  /// So many new peaks one after another, by hits. Each holds the other thread still, unless that
  /// has ended.
  void climb(int times) {
    const std::uint64_t misses = allocator.misses();
    for (int i = 0; i < times; ++i) climbed_.push_back(allocator.allocate(512, high));
    CHECK(allocator.misses() == misses);
  }
  void letGo() {
    for (void* block : climbed_) allocator.free(block);
    climbed_.clear();
  }
  /// Peaks are loose from now on, and the program holds nothing.
  void becomeLoose() {
    climb(kTimes);
    letGo();
    REQUIRE_FALSE(allocator.memoryStats().peaks_exact);
  }
  StatValue of(Stat stat) { return allocator.memoryStats()[stat]; }
  std::int64_t peakBytes() { return of(Stat::kAllocatedBytes).peak; }

  /// How often others are held still before exactness is given up.
  static constexpr int kTimes = 100;
  const Stream own = stream(), others = stream(), high = stream();
  IdleThread other;

 private:
  void warm(Stream on) {
    std::vector<void*> blocks{allocator.allocate(64 * kMiB, on)};
    for (int i = 0; i < 16; ++i) blocks.push_back(allocator.allocate(kMiB, on));
    for (void* block : blocks) allocator.free(block);
  }
  std::vector<void*> climbed_;
};

}  // namespace cistern::test
