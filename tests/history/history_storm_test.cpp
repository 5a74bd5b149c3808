// Histories that begin and end while threads allocate. These tests mean most under ThreadSanitizer.
#include <atomic>
#include <mutex>
#include <random>

#include "tests/history/history_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/slow_build.hpp"
#include "tests/support/threads.hpp"

namespace cistern::test {
namespace {

/// Threads that allocate on shared streams, and free their own blocks and each other's.
class Storm {
 public:
  Storm(SimRig& rig, const Streams& streams) : rig_(rig), streams_(streams) {}
  void run(std::size_t seed, int steps) {
    std::mt19937 random{unsigned(seed)};
    for (int i = 0; i < steps; ++i) step(random);
  }
  void freeAll() {
    for (void* block : std::exchange(blocks_, {})) rig_.allocator.free(block);
  }

 private:
  void step(std::mt19937& random) {
    if (random() % 100 == 0) return rig_.allocator.emptyCache();
    if (random() % 2 == 0 || !giveBack(random)) take(random);
  }
  void take(std::mt19937& random) {
    const std::size_t bytes = 1 + random() % (random() % 5 == 0 ? 4 * kMiB : 48 * kKiB);
    const Stream stream = streams_[random() % streams_.size()];
    try {
      void* const block = rig_.allocator.allocate(bytes, stream);
      if (random() % 4 == 0)
        rig_.allocator.recordStream(block, streams_[random() % streams_.size()]);
      const std::lock_guard lock(mutex_);
      blocks_.push_back(block);
    } catch (const OutOfMemory&) {
      (void)giveBack(random);
    }
  }
  bool giveBack(std::mt19937& random) {
    void* block = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (blocks_.empty()) return false;
      std::swap(blocks_[random() % blocks_.size()], blocks_.back());
      block = blocks_.back();
      blocks_.pop_back();
    }
    rig_.allocator.free(block);
    return true;
  }

  SimRig& rig_;
  const Streams& streams_;
  std::mutex mutex_;
  std::vector<void*> blocks_;
};

/// A history that begins where nothing lives may have recorded nothing yet.
void checkDump(CachingAllocator& allocator) {
  try {
    (void)pictureOf(dumped(allocator));
  } catch (const trace::TraceError& error) {
    CHECK_THAT(error.what(), Catch::Matchers::ContainsSubstring("records no allocation"));
  }
}

// Without the thread in the background, which may give pages back between a dump and a snapshot.
void checkStorm(const char* conf, std::uint64_t most_events, Stacks stacks) {
  constexpr std::size_t kThreads = 6;
  SimRig rig(conf, simOf(256 * kMiB, 10'000));
  const Streams streams(rig.allocator, 3);
  Storm storm(rig, streams);
  const int steps = kSlowBuild ? 400 : 4'000;
  std::atomic<std::size_t> running{kThreads};
  onThreads(kThreads + 1, [&](std::size_t i) {
    if (i < kThreads) {
      storm.run(i, steps);
      --running;
      return;
    }
    HistorySettings settings;
    settings.most_events = most_events;
    settings.stacks = stacks;
    bool stop = false;
    while (running != 0) {
      rig.allocator.recordHistory(settings);
      checkDump(rig.allocator);
      if (stop) rig.allocator.stopHistory();
      stop = !stop;
    }
    rig.allocator.recordHistory(settings);
  });
  checkAgreement(rig.allocator);
  onThreads(kThreads, [&](std::size_t i) { storm.run(100 + i, steps); });
  checkAgreement(rig.allocator);
  storm.freeAll();
  CHECK(pictureOf(dumped(rig.allocator)).living.empty());
}

TEST_CASE("a history that begins amid a storm agrees with the snapshot") {
  checkStorm("background_thread:false", 1'000'000, Stacks::kNone);
}
TEST_CASE("a short history with stacks agrees with the snapshot") {
  checkStorm("background_thread:false", 1'000, Stacks::kAllocations);
}
TEST_CASE("a history of segments agrees with the snapshot") {
  checkStorm("backing:segments,background_thread:false", 100'000, Stacks::kNone);
}

}  // namespace
}  // namespace cistern::test
