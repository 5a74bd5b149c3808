// What a hook of the program may do: every verb, from every hook, wherever it is called.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "tests/pools/pools_support.hpp"

namespace cistern::test {
namespace {

/// Ends the process, naming what hangs, unless it is destroyed within a minute.
class Watchdog {
 public:
  explicit Watchdog(std::string what) : what_(std::move(what)), thread_([this] { watch(); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, std::chrono::minutes(1), [this] { return over_; })) return;
    std::fprintf(stderr, "hangs: %s\n", what_.c_str());
    std::abort();
  }
  const std::string what_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

constexpr MempoolId_t kPool{0, 1'000'000'001}, kOther{0, 1'000'000'002};

/// 64 MiB, of which 40 are held; streams that nothing captures; a pool in use.
struct Scene : PoolRig {
  Scene() : PoolRig("", simOf(64 * kMiB, 1'000'000)) {
    pools.createOrIncrefPool(kPool);
    held = allocate(40 * kMiB, t);
    (void)temporary(kMiB, gone);
  }
  const Stream s = stream(), t = stream(), u = stream(), gone = stream();
  void* held = nullptr;
};

struct Verb {
  const char* name;
  void (*call)(Scene&);
};

void captureAndReplay(Scene& scene) {
  Graph graph(scene.pools);
  graph.captureBegin(scene.u, {}, CaptureMode::kRelaxed);
  scene.free(scene.allocate(kMiB, scene.u));
  graph.captureEnd();
  graph.replay(scene.u);
}

const Verb kVerbs[] = {
    {"allocate, a little", [](Scene& x) { x.free(x.allocate(kKiB, x.t)); }},
    {"allocate, much", [](Scene& x) { x.free(x.allocate(12 * kMiB, x.u)); }},
    {"allocate, too much", [](Scene& x) { CHECK(x.outOfMemory(63 * kMiB, x.u)); }},
    {"allocate in a pool", [](Scene& x) { x.free(x.pools.allocate(kMiB, x.t, kPool)); }},
    {"recordStream",
     [](Scene& x) {
       x.allocator.recordStream(x.held, x.u);
       void* block = x.allocate(kMiB, x.t);
       x.allocator.recordStream(block, x.u);
       x.free(block);
     }},
    {"forgetStream", [](Scene& x) { x.allocator.forgetStream(x.gone); }},
    {"emptyCache", [](Scene& x) { x.allocator.emptyCache(); }},
    {"emptyCache of a pool", [](Scene& x) { x.pools.emptyCache(kPool); }},
    {"emptyCache of the default pool", [](Scene& x) { x.pools.emptyCache({}); }},
    {"memoryStats", [](Scene& x) { (void)x.allocator.memoryStats(); }},
    {"memoryStats of a pool", [](Scene& x) { (void)x.pools.memoryStats(kPool); }},
    {"resetting statistics",
     [](Scene& x) { x.allocator.resetPeakStats(), x.allocator.resetAccumulatedStats(); }},
    {"cacheInfo", [](Scene& x) { (void)x.allocator.cacheInfo(); }},
    {"getMemoryInfo", [](Scene& x) { (void)x.allocator.getMemoryInfo().orThrow(); }},
    {"blockSize", [](Scene& x) { CHECK(x.allocator.blockSize(x.held) == 40 * kMiB); }},
    {"getBaseAllocation", [](Scene& x) { (void)x.allocator.getBaseAllocation(x.held); }},
    {"setLimit", [](Scene& x) { x.allocator.setLimit(x.allocator.limit()); }},
    {"adding hooks",
     [](Scene& x) {
       x.allocator.registerReclaimCallback([] { return false; });
       x.allocator.attachOutOfMemoryObserver([](const OutOfMemoryReport&) {});
       x.allocator.attachPoolReleasedObserver([](MempoolId_t) {});
     }},
    {"replacing the misuse hook",
     [](Scene& x) { x.allocator.setMisuseHook([](const Misuse&) {}); }},
    {"making and releasing a pool",
     [](Scene& x) {
       x.pools.createOrIncrefPool(kOther);
       CHECK(x.pools.getPoolUseCount(kOther) == 1);
       x.free(x.pools.allocate(kMiB, x.t, kOther));
       x.pools.releasePool(kOther);
     }},
    {"a scope",
     [](Scene& x) {
       x.pools.beginAllocateToPool(kOther, PoolFilter::thisThread());
       x.free(x.allocate(kMiB, x.t));
       x.pools.endAllocateToPool(kOther);
       x.pools.releasePool(kOther);
     }},
    {"a MemPool, and its end",
     [](Scene& x) {
       const MemPool pool(x.pools, {});
       const MemPoolScope scope(x.pools, pool.id(), PoolFilter::stream(x.u));
       x.free(x.allocate(kMiB, x.u));
     }},
    {"lending",
     [](Scene& x) { x.pools.setUseOnOOM(kPool, true), x.pools.setUseOnOOM(kPool, false); }},
    {"setting a pool back",
     [](Scene& x) {
       const PoolCheckpoint checkpoint = x.pools.getCheckpointState(kPool);
       CHECK(x.pools.checkPoolLiveAllocations(kPool, {}));
       (void)x.pools.setCheckpointPoolState(checkpoint);
     }},
    {"a capture, a replay and a reset", captureAndReplay},
    {"audit", [](Scene& x) { x.allocator.audit(); }},
};

/// Attaches what is to happen to a hook, and sees to it that the hook is called.
struct Occasion {
  const char* name;
  void (*attach)(Scene&, const std::function<void()>&);
  void (*happen)(Scene&);
};

void onRelease(Scene& scene, const std::function<void()>& what) {
  scene.allocator.attachPoolReleasedObserver([&](MempoolId_t) { what(); });
}
void onMisuse(Scene& scene, const std::function<void()>& what) {
  scene.allocator.setMisuseHook([&](const Misuse&) { what(); });
}
void runShort(Scene& scene) { CHECK(scene.outOfMemory(40 * kMiB, scene.s)); }

/// A graph with 20 MiB that was reset while its replay is queued.
void leaveReplay(Scene& scene) {
  Graph graph(scene.pools);
  graph.captureBegin(scene.s, {}, CaptureMode::kRelaxed);
  scene.temporary(20 * kMiB, scene.s);
  graph.captureEnd();
  graph.replay(scene.s);
}

const Occasion kOccasions[] = {
    {"a reclaim callback",
     [](Scene& x, const std::function<void()>& what) {
       x.allocator.registerReclaimCallback([&] { return what(), false; });
     },
     runShort},
    {"an out-of-memory observer",
     [](Scene& x, const std::function<void()>& what) {
       x.allocator.attachOutOfMemoryObserver([&](const OutOfMemoryReport&) { what(); });
     },
     runShort},
    {"a pool's release", onRelease,
     [](Scene& x) {
       x.pools.createOrIncrefPool({0, 1'000'000'003});
       x.pools.releasePool({0, 1'000'000'003});
     }},
    {"a MemPool's end", onRelease, [](Scene& x) { const MemPool pool(x.pools, {}); }},
    {"an abandoned capture", onRelease,
     [](Scene& x) {
       Graph graph(x.pools);
       graph.captureBegin(x.s, {}, CaptureMode::kRelaxed);
       graph.abandon();
     }},
    {"a graph's reset", onRelease,
     [](Scene& x) {
       Graph graph(x.pools);
       graph.captureBegin(x.s, {}, CaptureMode::kRelaxed);
       graph.captureEnd();
     }},
    {"emptyCache after a replay", onRelease,
     [](Scene& x) {
       leaveReplay(x);
       x.finish();
       x.allocator.emptyCache();
     }},
    {"waiting for a replay at the last resort", onRelease,
     [](Scene& x) {
       leaveReplay(x);
       x.free(x.allocate(18 * kMiB, x.t));
     }},
    {"a second free", onMisuse,
     [](Scene& x) {
       void* block = x.temporary(kKiB, x.s);
       x.free(block);
     }},
    {"a free of a foreign pointer", onMisuse, [](Scene& x) { x.free(&x); }},
    {"a second free of a large block", onMisuse,
     [](Scene& x) {
       void* block = x.temporary(8 * kMiB, x.s);
       x.allocator.emptyCache();
       x.free(block);
     }},
    {"a second free during a capture", onMisuse,
     [](Scene& x) {
       Graph graph(x.pools);
       graph.captureBegin(x.s, {}, CaptureMode::kRelaxed);
       void* block = x.temporary(kMiB, x.s);
       x.free(block);
       graph.captureEnd();
     }},
    {"a wrong recordStream", onMisuse,
     [](Scene& x) { x.allocator.recordStream(x.temporary(kMiB, x.s), x.u); }},
    {"a filter",
     [](Scene& x, const std::function<void()>& what) {
       x.pools.beginAllocateToPool(kPool, PoolFilter::streams([&](Stream stream) {
                                     if (stream == Stream{}) what();
                                     return false;
                                   }));
     },
     [](Scene& x) {
       x.free(x.allocate(kKiB, Stream{}));
       x.pools.endAllocateToPool(kPool);
     }},
};

}  // namespace

TEST_CASE("a hook that is no function is refused where it is given", "[pools]") {
  PoolRig rig;
  CHECK_THROWS_AS(rig.allocator.registerReclaimCallback(std::function<bool()>()), InvalidArgument);
  CHECK_THROWS_AS(
      rig.allocator.registerReclaimCallback(std::function<bool(const MemoryShortage&)>()),
      InvalidArgument);
  CHECK_THROWS_AS(rig.allocator.attachOutOfMemoryObserver({}), InvalidArgument);
  CHECK_THROWS_AS(rig.allocator.attachPoolReleasedObserver({}), InvalidArgument);
  rig.allocator.setMisuseHook({});
  CHECK(rig.outOfMemory(2 * kGiB, rig.stream()));
  MemPool(rig.pools);
}

TEST_CASE("every hook may call every verb", "[pools]") {
  for (const Occasion& occasion : kOccasions) {
    for (const Verb& verb : kVerbs) {
      CAPTURE(occasion.name, verb.name);
      const Watchdog watchdog(std::string(verb.name) + " from " + occasion.name);
      Scene scene;
      bool called = false;
      const std::function<void()> what = [&] {
        if (called) return;
        called = true;
        try {
          verb.call(scene);
        } catch (const OutOfMemory&) {  // which most occasions are about
        }
      };
      occasion.attach(scene, what);
      occasion.happen(scene);
      CHECK(called);
      scene.free(scene.held);
      scene.finish();
      scene.free(scene.allocate(40 * kMiB, scene.s));
    }
  }
}

TEST_CASE("what a reclaim callback throws leaves the verb, which changed nothing", "[pools]") {
  Scene scene;
  bool throws = true;
  scene.allocator.registerReclaimCallback([&]() -> bool {
    if (throws) throw std::runtime_error("mine");
    return false;
  });
  const std::int64_t before = nowOf(scene.allocator, Stat::kAllocatedBytes);
  CHECK_THROWS_WITH(scene.allocate(30 * kMiB, scene.s), "mine");
  CHECK(nowOf(scene.allocator, Stat::kAllocatedBytes) == before);
  throws = false;
  scene.free(scene.allocate(12 * kMiB, scene.s));
  scene.free(scene.held);
}

TEST_CASE("a reclaim callback is not called for what it allocates itself", "[pools]") {
  Scene scene;
  int calls = 0;
  scene.allocator.registerReclaimCallback([&] {
    ++calls;
    CHECK(scene.outOfMemory(40 * kMiB, scene.u));
    return false;
  });
  CHECK(scene.outOfMemory(40 * kMiB, scene.s));
  CHECK(calls == 1);
  scene.free(scene.held);
}

TEST_CASE("what an out-of-memory observer throws is thrown instead", "[pools]") {
  Scene scene;
  int after = 0, nested = 0;
  bool throws = true;
  scene.allocator.attachOutOfMemoryObserver([&](const OutOfMemoryReport&) {
    if (throws) throw std::runtime_error("mine");
  });
  scene.allocator.attachOutOfMemoryObserver([&](const OutOfMemoryReport&) {
    ++after;
    nested += scene.outOfMemory(40 * kMiB, scene.u);  // tells nobody
  });
  CHECK_THROWS_WITH(scene.allocate(40 * kMiB, scene.s), "mine");
  CHECK(after == 0);
  throws = false;
  CHECK(scene.outOfMemory(40 * kMiB, scene.s));
  CHECK(after == 1);
  CHECK(nested == 1);
  scene.free(scene.held);
}

}  // namespace cistern::test
