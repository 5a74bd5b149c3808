// Many threads over moving pages, with the background thread at work. Means most under
// ThreadSanitizer.

#include "tests/engine/pages/pages_support.hpp"
#include "tests/support/threads.hpp"

namespace cistern::test {
namespace {

constexpr std::size_t kWorkers = 8;
constexpr std::size_t kStreamsEach = 4;

/// One thread with four streams of its own; sometimes it uses a block on another thread's stream.
class Worker {
 public:
  Worker(SimRig& rig, const Streams& streams, std::size_t index)
      : rig_(rig), streams_(streams), index_(index), random_(unsigned(index) + 1) {
    event_ = rig.sim().createEvent().orThrow();
  }
  void run(int steps) {
    for (int i = 0; i < steps; ++i) step();
    for (void* block : held_) rig_.allocator.free(block);
    rig_.sim().destroyEvent(event_).orThrow();
  }

 private:
  void step() {
    const auto dice = random_() % 100;
    if (dice < 2) return rig_.allocator.emptyCache();
    if (dice < 3) return (void)rig_.allocator.memoryStats();
    if (dice < 60 && held_.size() < 10) return take();
    if (!held_.empty()) letGo();
  }
  void take() {
    const std::size_t most = random_() % 4 == 0 ? 24 * kMiB : 3 * kMiB;
    stream_ = streams_[index_ * kStreamsEach + random_() % kStreamsEach];
    try {
      held_.push_back(rig_.allocator.allocate(1 + random_() % most, stream_));
    } catch (const OutOfMemory&) {
      return letGo();
    }
    rig_.touch(stream_, held_.back());
    if (random_() % 4 == 0) useElsewhere(held_.back());
  }
  void letGo() {
    if (held_.empty()) return;
    std::swap(held_[random_() % held_.size()], held_.back());
    rig_.allocator.free(held_.back());
    held_.pop_back();
  }
  void useElsewhere(void* block) {
    const Stream other = streams_[random_() % streams_.size()];
    rig_.sim().recordEvent(event_, stream_).orThrow();
    rig_.sim().waitEvent(other, event_).orThrow();
    rig_.read(other, block);
    rig_.allocator.recordStream(block, other);
  }

  SimRig& rig_;
  const Streams& streams_;
  const std::size_t index_;
  std::mt19937 random_;
  Event event_;
  Stream stream_;
  std::vector<void*> held_;
};

PageCounts manyThreads(const char* conf, int steps) {
  SimRig rig(conf, simOf(2 * kGiB, 20'000));
  const Streams streams(rig.allocator, kWorkers * kStreamsEach);
  onThreads(kWorkers, [&](std::size_t i) { Worker(rig, streams, i).run(steps); });
  CHECK(nowOf(rig.allocator, Stat::kAllocation) == 0);
  rig.sim().synchronizeDevice().orThrow();
  rig.allocator.emptyCache();
  CHECK(eventually([&] { return reservedOf(rig.allocator) == 0; }));
  CHECK(eventually([&] { return takenOf(rig.sim()) == 0; }));
  CHECK(rig.allocator.memoryStats().num_misuses == 0);
  return pagesOf(rig.allocator);
}

}  // namespace

TEST_CASE("threads allocate, free, record uses and empty the cache over moving pages",
          "[engine][pages]") {
  CHECK(manyThreads("recycle:eager", 600).recycled > 0);
  CHECK(manyThreads("", 600).created > 0);
}

TEST_CASE("threads at a limit take each other's pages", "[engine][pages]") {
  CHECK(manyThreads("limit:128M", 400).recycled > 0);
}

}  // namespace cistern::test
