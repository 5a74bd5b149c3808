// Threads that allocate in pools, capture, replay, empty and drop pools at once. These tests mean
// most under ThreadSanitizer.
#include <atomic>
#include <mutex>
#include <random>
#include <thread>

#include "tests/engine/pages/pages_support.hpp"
#include "tests/pools/unwind_support.hpp"

namespace cistern::test {
namespace {

/// Threads whose first exception is given on when they are joined.
class Crew {
 public:
  template <class Body>
  void add(Body body) {
    threads_.emplace_back([this, body] {
      try {
        body();
      } catch (...) {
        const std::lock_guard lock(mutex_);
        failure_ = std::current_exception();
        failed = true;
      }
    });
  }
  std::atomic<bool> failed{false};  ///< some thread has ended early
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::exception_ptr failure_;
};

/// A place where one thread leaves a block that another frees.
class Slot {
 public:
  void* exchange(void* block) { return block_.exchange(block); }

 private:
  std::atomic<void*> block_{nullptr};
};

constexpr std::size_t kPoolWorkers = 8;
constexpr int kSteps = kSlowBuild ? 150 : 1'500;
constexpr int kGraphs = kSlowBuild ? 12 : 100;

/// What the threads share.
struct Site {
  explicit Site(const char* conf)
      : rig(conf, simOf(4 * kGiB, 20'000)),
        streams(rig.sim(), kPoolWorkers + 3),
        shared(std::in_place, rig.pools) {}

  PoolRig rig;
  Streams streams;  ///< one for each worker, one for each odd thread, two for the captures
  std::optional<MemPool> shared;
  Slot captured;  ///< a block of a capture that may be under way
  std::atomic<int> busy{int(kPoolWorkers) + 1};
};

/// Allocates and frees in the default pool, in a pool of its own and in the shared one.
class Worker {
 public:
  Worker(Site& site, std::size_t index)
      : site_(site), stream_(site.streams[index]), random_(unsigned(index)), own_(site.rig.pools) {}
  ~Worker() {
    for (void* block : held_) site_.rig.allocator.free(block);
  }
  void run() {
    for (int i = 0; i < kSteps; ++i) step();
    --site_.busy;
  }

 private:
  void step() {
    if (held_.size() > 10 || (random_() % 2 == 0 && !held_.empty())) {
      std::swap(held_[random_() % held_.size()], held_.back());
      site_.rig.allocator.free(held_.back());
      held_.pop_back();
      return;
    }
    held_.reserve(16);
    held_.push_back(take(1 + random_() % (random_() % 4 == 0 ? 6 * kMiB : 60 * kKiB)));
    site_.rig.touch(stream_, held_.back());
  }
  void* take(std::size_t bytes) {
    const auto dice = random_() % 4;
    if (dice == 0) return own_.allocate(bytes, stream_);
    if (dice == 1) return site_.shared->allocate(bytes, stream_);
    if (dice == 2) return site_.rig.allocate(bytes, stream_);
    const MemPoolScope scope(random_() % 2 ? own_ : *site_.shared);
    return site_.rig.allocate(bytes, stream_);
  }

  Site& site_;
  const Stream stream_;
  std::mt19937 random_;
  MemPool own_;
  std::vector<void*> held_;
};

/// Captures graphs on two streams again and again, each into a pool of its own or one for all, and
/// replays and drops them.
class Capturer {
 public:
  explicit Capturer(Site& site)
      : site_(site), s_(site.streams[kPoolWorkers]), side_(site.streams[kPoolWorkers + 1]) {}

  void run() {
    MemPool pool(site_.rig.pools);
    // Another thread may have asked about a stream just before its capture began, and break the
    // capture by asking it then (open: StreamProgress::markOrAsk). It must unwind like any other.
    for (std::size_t i = 0; i < kGraphs; ++i) {
      try {
        once(pool, i);
      } catch (const DeviceFailure&) {
      }
    }
    --site_.busy;
  }

 private:
  void once(MemPool& pool, std::size_t i) {
    PoolRig& rig = site_.rig;
    Graph graph(rig.pools);
    {
      GraphCapture capture(graph, s_, i % 2 ? pool.id() : MempoolId_t{}, CaptureMode::kThreadLocal);
      rig.join(side_, s_);
      for (std::size_t n = 0; n < 20; ++n) {
        const Stream stream = n % 3 ? s_ : side_;
        rig.allocator.free(use(stream, rig.allocate((1 + (i + n) % 9) * 700 * kKiB, stream)));
        leave(rig.allocate((1 + n) * 10 * kKiB, s_));
      }
      rig.join(s_, side_);
      if (i % 5 == 4) return;  // abandoned
      capture.end();
    }
    graph.replay(s_);
    graph.replay(s_);
    if (i % 2) rig.sim().synchronizeStream(s_).orThrow();
  }
  void* use(Stream stream, void* block) {
    try {
      site_.rig.touch(stream, block);
    } catch (...) {
      site_.rig.allocator.free(block);
      throw;
    }
    return block;
  }
  // The work is recorded before another thread can free the block.
  void leave(void* block) {
    use(s_, block);
    if (void* left = site_.captured.exchange(block)) site_.rig.allocator.free(left);
  }

  Site& site_;
  const Stream s_, side_;
};

void everythingAtOnce(const char* conf) {
  Site site(conf);
  PoolRig& rig = site.rig;
  {
    Crew crew;
    for (std::size_t i = 0; i < kPoolWorkers; ++i) crew.add([&, i] { Worker(site, i).run(); });
    crew.add([&] { Capturer(site).run(); });
    crew.add([&] {
      while (site.busy > 0 && !crew.failed) {
        rig.allocator.emptyCache();
        rig.pools.emptyCache(site.shared->id());
        std::this_thread::yield();
      }
    });
    crew.add([&] {
      const Stream stream = site.streams[kPoolWorkers + 2];
      while (site.busy > 0 && !crew.failed) {
        MemPool pool(rig.pools);
        void* block = pool.allocate(3 * kMiB, stream);
        rig.touch(stream, block);
        rig.allocator.free(block);
      }
    });
    crew.add([&] {  // frees what the capture leaves, on a thread that captures nothing
      while (site.busy > 0 && !crew.failed) {
        if (void* block = site.captured.exchange(nullptr)) rig.allocator.free(block);
        std::this_thread::yield();
      }
    });
    crew.join();
  }
  rig.allocator.free(site.captured.exchange(nullptr));
  CHECK(nowOf(rig.allocator, Stat::kAllocation) == 0);
  CHECK(site.shared->useCount() == 1);
  rig.sim().synchronizeDevice().orThrow();
  rig.allocator.emptyCache();  // completes what frees have put off during a capture
  rig.sim().synchronizeDevice().orThrow();
  site.shared.reset();
  rig.allocator.emptyCache();
  CHECK(eventually([&] { return reservedOf(rig.allocator) == 0; }));
  CHECK(eventually([&] { return takenOf(rig.sim()) == 0; }));
  CHECK(rig.allocator.memoryStats().num_misuses == 0);
}

}  // namespace

TEST_CASE("threads use pools, capture, replay, empty and drop at once", "[pools]") {
  everythingAtOnce("background_thread:false");
  everythingAtOnce("");
}

}  // namespace cistern::test
