// Many threads at once, on shared streams. These tests mean most under ThreadSanitizer.
#include "tests/support/threads.hpp"

#include <atomic>
#include <mutex>
#include <random>

#include "tests/engine/engine_support.hpp"
#include "tests/support/slow_build.hpp"

namespace cistern::test {
namespace {

constexpr std::size_t kThreadsAtOnce = 8;

struct Parcel {
  void* block;
  std::size_t bytes;
  Stream stream;
};

/// Blocks on their way to be freed by another thread.
class Mailbox {
 public:
  void put(Parcel held) {
    const std::lock_guard lock(mutex_);
    held_.push_back(held);
  }
  bool take(Parcel& held) {
    const std::lock_guard lock(mutex_);
    if (held_.empty()) return false;
    held = held_.back();
    held_.pop_back();
    return true;
  }

 private:
  std::mutex mutex_;
  std::vector<Parcel> held_;
};

/// One thread of a program that allocates on shared streams, uses blocks on two of them, and frees
/// its own blocks and those of others.
class SharingWorker {
 public:
  SharingWorker(SimRig& rig, const Streams& streams, Mailbox& mailbox, std::size_t seed)
      : rig_(rig), streams_(streams), mailbox_(mailbox), random_(unsigned(seed)) {
    event_ = rig.sim().createEvent().orThrow();
  }
  void run(int steps) {
    for (int i = 0; i < steps; ++i) step();
    for (const Parcel& held : held_) rig_.allocator.free(held.block);
    rig_.sim().destroyEvent(event_).orThrow();
  }
  std::uint64_t refused() const { return refused_; }

 private:
  void step() {
    const auto dice = random_() % 100;
    Parcel other;
    if (dice < 50 || held_.empty()) return take();
    if (dice < 90) return letGo();
    if (dice < 98) {
      if (mailbox_.take(other)) rig_.allocator.free(other.block);
      return;
    }
    if (dice < 99) return rig_.allocator.emptyCache();
    (void)rig_.allocator.memoryStats();
  }
  void take() {
    if (held_.size() >= 12) return letGo();
    const std::size_t most = random_() % 4 == 0 ? 3 * kMiB : 64 * kKiB;
    const std::size_t bytes = 1 + random_() % most;
    const Stream stream = streams_[random_() % streams_.size()];
    try {
      held_.push_back({rig_.allocator.allocate(bytes, stream), bytes, stream});
    } catch (const OutOfMemory&) {
      ++refused_;
      return letGo();
    }
    work(stream, held_.back(), sim::AccessKind::kWrite);
  }
  void letGo() {
    if (held_.empty()) return;
    std::swap(held_[random_() % held_.size()], held_.back());
    const Parcel held = held_.back();
    held_.pop_back();
    if (random_() % 3 == 0) useElsewhere(held);
    random_() % 3 == 0 ? mailbox_.put(held) : rig_.allocator.free(held.block);
  }
  void useElsewhere(const Parcel& held) {
    const Stream other = streams_[random_() % streams_.size()];
    rig_.sim().recordEvent(event_, held.stream).orThrow();
    rig_.sim().waitEvent(other, event_).orThrow();
    work(other, held, sim::AccessKind::kRead);
    rig_.allocator.recordStream(held.block, other);
  }
  void work(Stream stream, const Parcel& held, sim::AccessKind kind) {
    const sim::Access access{toAddress(held.block), held.bytes, kind};
    rig_.sim().launch(stream, {"work", {access}, 3'000, nullptr}).orThrow();
  }

  SimRig& rig_;
  const Streams& streams_;
  Mailbox& mailbox_;
  std::mt19937 random_;
  Event event_;
  std::vector<Parcel> held_;
  std::uint64_t refused_ = 0;
};

void shareStreams(const char* conf, int steps) {
  SimRig rig(conf, simOf(4 * kGiB, 20'000));
  const Streams streams(rig.allocator, 4);
  Mailbox mailbox;
  onThreads(kThreadsAtOnce,
            [&](std::size_t i) { SharingWorker(rig, streams, mailbox, i).run(steps); });
  Parcel left;
  while (mailbox.take(left)) rig.allocator.free(left.block);
  rig.allocator.audit();
  CHECK(nowOf(rig.allocator, Stat::kAllocation) == 0);
  rig.sim().synchronizeDevice().orThrow();
  rig.allocator.emptyCache();
  CHECK(reservedOf(rig.allocator) == 0);
  CHECK(takenOf(rig.sim()) == 0);
  CHECK(rig.allocator.memoryStats().num_misuses == 0);
}

}  // namespace

TEST_CASE("threads allocate, free, record uses and empty the cache at once", "[engine]") {
  shareStreams("", 5'000);
}

TEST_CASE("threads under pressure take each other's memory", "[engine]") {
  shareStreams("limit:48M", kSlowBuild ? 700 : 2'000);
  shareStreams("limit:24M,garbage_collection_threshold:0.5", 500);
}

TEST_CASE("statistics read by one thread are consistent while others work", "[engine]") {
  SimRig rig("limit:64M", simOf(kGiB, 20'000));
  const Streams streams(rig.allocator, 4);
  Mailbox mailbox;
  std::atomic<std::size_t> working{kThreadsAtOnce - 1};
  onThreads(kThreadsAtOnce, [&](std::size_t i) {
    if (i > 0) {
      SharingWorker(rig, streams, mailbox, i).run(400);
      --working;
      return;
    }
    std::uint64_t wrong = 0;
    while (working > 0) {
      const MemoryStats stats = rig.allocator.memoryStats();
      for (std::size_t s = 0; s < kStatCount; ++s) {
        const StatValue& all = stats.all[s];
        wrong += all.peak < all.current || all.allocated - all.freed != all.current;
        wrong += all.current != stats.small_pool[s].current + stats.large_pool[s].current;
        wrong += all.current < 0 || all.freed < 0;
      }
      wrong += stats[Stat::kActiveBytes].current < stats[Stat::kAllocatedBytes].current;
      wrong += stats[Stat::kReservedBytes].current < stats[Stat::kActiveBytes].current;
      wrong += stats[Stat::kReservedBytes].peak > mib(64);
      const CacheInfo cache = rig.allocator.cacheInfo();
      wrong += cache.largest_free_block > cache.free_bytes;
      rig.allocator.audit();
    }
    CHECK(wrong == 0);
  });
  Parcel left;
  while (mailbox.take(left)) rig.allocator.free(left.block);
}

TEST_CASE("heaps are made while others are looked up", "[engine]") {
  SimRig rig("", simOf(16 * kGiB));
  onThreads(kThreadsAtOnce, [&](std::size_t) {
    std::vector<std::pair<Stream, void*>> blocks;
    for (int i = 0; i < 40; ++i) {
      const Stream stream = rig.stream();
      blocks.emplace_back(stream, rig.allocator.allocate(kKiB, stream));
      for (auto& [on, block] : blocks) {
        rig.allocator.free(block);
        block = rig.allocator.allocate(kKiB, on);
      }
    }
    for (const auto& [on, block] : blocks) rig.allocator.free(block);
  });
  CHECK(nowOf(rig.allocator, Stat::kAllocation) == 0);
  CHECK(rig.allocator.memoryStats()[Stat::kAllocation].peak <= std::int64_t(kThreadsAtOnce * 40));
}

TEST_CASE("wrong frees on some threads do no harm to segments that come and go on others",
          "[engine]") {
  SimRig rig("", simOf(kGiB));
  std::atomic<std::uint64_t> reported{0}, seen{0};
  std::atomic<Address> last{1};
  rig.allocator.setMisuseHook([&](const Misuse&) { ++reported; });
  std::atomic<std::size_t> working{4};
  onThreads(kThreadsAtOnce, [&](std::size_t i) {
    if (i >= 4) {
      while (working > 0) {
        rig.allocator.free(toPointer(last.load() + 1));  // never where a block begins
        ++seen;
      }
      return;
    }
    for (int round = 0; round < (kSlowBuild ? 100 : 300); ++round) {
      void* block = rig.allocator.allocate((1 + std::size_t(round % 40)) * kMiB);
      last = toAddress(block);
      rig.allocator.free(block);
      rig.allocator.emptyCache();
    }
    --working;
  });
  CHECK(reported == seen);
  CHECK(rig.allocator.memoryStats().num_misuses == seen);
}

}  // namespace cistern::test
