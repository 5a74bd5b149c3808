// Setting a pool back while other threads give memory back to the device, collect garbage, take
// pages, borrow from the pool, and have what a draining pool has left.
#include <atomic>
#include <optional>
#include <random>
#include <thread>

#include "allocator/engine/exchange/exchange.hpp"
#include "tests/pools/pools_support.hpp"
#include "tests/support/slow_build.hpp"

namespace cistern::test {
namespace {

constexpr int kRounds = kSlowBuild ? 150 : 1'500;

/// What another thread does until the pools are done with.
struct Others {
  const char* what;
  const char* conf;
  void (*step)(PoolRig&, Stream);
};

void takeMost(PoolRig& rig, Stream stream) {
  try {
    rig.temporary(150 * kMiB, stream);
  } catch (const OutOfMemory&) {
  }
}

// A capture gives nothing back to the device: what drained pools have left lying about by then, in
// segments too small for it, may leave it none.
void captureOne(PoolRig& rig, Stream stream) {
  Graph graph(rig.pools);
  GraphCapture capture(graph, stream);
  try {
    rig.free(rig.allocate(20 * kMiB, stream));
  } catch (const OutOfMemory&) {
  }
  capture.end();
}

const Others kOthers[] = {
    {"emptyCache", "backing:segments", [](PoolRig& rig, Stream) { rig.allocator.emptyCache(); }},
    {"emptyCache", "backing:pages", [](PoolRig& rig, Stream) { rig.allocator.emptyCache(); }},
    {"garbage collection", "backing:segments,garbage_collection_threshold:0.01",
     [](PoolRig& rig, Stream stream) {
       rig.temporary(30 * kMiB, stream);
       cistern::emptyCache(rig.allocator.engine(), &rig.allocator.engine().default_pool);
     }},
    {"garbage collection", "backing:pages,garbage_collection_threshold:0.01",
     [](PoolRig& rig, Stream stream) {
       rig.temporary(30 * kMiB, stream);
       cistern::emptyCache(rig.allocator.engine(), &rig.allocator.engine().default_pool);
     }},
    {"misses that borrow", "backing:segments", takeMost},
    {"misses that take pages", "backing:pages", takeMost},
    {"captures", "backing:segments", captureOne},
};

/// The other thread, which can be told to rest: some attempts must find nobody beside them, however
/// the two run, or no attempt might ever succeed.
class Beside {
 public:
  Beside(PoolRig& rig, Stream stream, const Others& others)
      : thread_([this, &rig, stream, step = others.step] {
          while (!stop_) {
            resting_ = rest_.load();
            resting_ ? std::this_thread::yield() : step(rig, stream);
          }
        }) {}

  ~Beside() {
    stop_ = true;
    thread_.join();
  }

  /// Returns when the thread has begun to rest, or is about to go on.
  void rest(bool whether) {
    rest_ = whether;
    while (resting_ != whether) std::this_thread::yield();
  }

 private:
  std::atomic<bool> stop_{false}, rest_{false}, resting_{false};
  std::thread thread_;
};

/// Whether a pool was set back that is live, or drains while one block of it is held.
bool setBackOne(PoolRig& rig, Stream s, Stream t, bool lends, bool drains) {
  std::optional<MemPool> pool(std::in_place, rig.pools, MemPoolOptions{nullptr, true, lends});
  const MempoolId_t id = pool->id();
  void* const kept = pool->allocate(kKiB, s);
  void* const block = pool->allocate(20 * kMiB, s);
  void* const other = pool->allocate(3 * kMiB, t);
  rig.touch(t, other);
  const PoolCheckpoint checkpoint = rig.pools.getCheckpointState(id);
  rig.free(block);
  rig.free(other);
  if (drains) pool.reset();
  try {
    const CheckpointDelta delta = rig.pools.setCheckpointPoolState(checkpoint);
    CHECK(delta.made.size() == 2);
    CHECK(rig.holds(id, {kept, block, other}));
    rig.touch(s, block);
    rig.touch(t, other);
    rig.free(block);
    rig.free(other);
    rig.free(kept);
    return true;
  } catch (const PoolError&) {
    CHECK(rig.holds(id, {kept}));
    rig.free(kept);
    return false;
  }
}

}  // namespace

TEST_CASE("a pool is set back or is not beside threads that take its memory", "[pools][threads]") {
  for (const Others& others : kOthers) {
    INFO(others.what << " on " << others.conf);
    PoolRig rig(others.conf, simOf(256 * kMiB));
    const Stream s = rig.stream(), t = rig.stream(), u = rig.stream();
    Beside beside(rig, u, others);
    std::mt19937_64 random(1);
    for (int i = 0; i < kRounds; ++i) {
      const bool lends = random() % 2 == 0, drains = random() % 4 == 0, alone = random() % 8 == 0;
      if (alone) beside.rest(true);
      const bool set_back = setBackOne(rig, s, t, lends, drains);
      if (alone && !drains) CHECK(set_back);
      if (alone) beside.rest(false);
    }
  }
}

}  // namespace cistern::test
