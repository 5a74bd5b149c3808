// Children that are forked while other threads allocate in pools and capture. Not under the
// sanitizers: of the threads that vanish, they keep what a child cannot use.
#include <atomic>
#include <latch>
#include <thread>

#include "cistern/graph.hpp"
#include "cistern/pool.hpp"
#include "tests/pools/pools_support.hpp"
#include "tests/support/child_process.hpp"

#if CISTERN_FORKS_AMID_THREADS

namespace cistern::test {
namespace {

void useScope(MemPool& pool, Stream stream) {
  const MemPoolScope scope(pool);
  CachingAllocator& allocator = pool.pools().allocator();
  void* const one = allocator.allocate(kMiB, stream);
  void* const two = allocator.allocate(5 * kMiB, stream);
  allocator.free(one);
  allocator.free(two);
}

void useGraph(Pools& pools, Stream stream) {
  Graph graph(pools);
  graph.captureBegin(stream, {}, CaptureMode::kThreadLocal);
  pools.allocator().free(pools.allocator().allocate(3 * kMiB, stream));
  graph.captureEnd();
}

}  // namespace

TEST_CASE("a child that is forked while other threads use pools can exit", "[pools]") {
  const int status = statusOfChild([] {
    static SimWork work;
    static CachingAllocator allocator(work.device(), Options{});
    static Pools pools(allocator);
    static MemPool pool(pools);
    static Graph graph(pools);
    const Stream first = work.device().createStream().orThrow();
    const Stream second = work.device().createStream().orThrow();
    graph.captureBegin(first);
    (void)allocator.allocate(kMiB, first);
    graph.captureEnd();
    std::atomic<bool> stopped{false};
    std::latch begun(2);
    std::thread scopes([&] {
      useScope(pool, first);
      for (begun.count_down(); !stopped;) useScope(pool, first);
    });
    std::thread graphs([&] {
      useGraph(pools, second);
      for (begun.count_down(); !stopped;) useGraph(pools, second);
    });
    begun.wait();
    const bool all = allChildrenExit(40);
    stopped = true;
    scopes.join();
    graphs.join();
    if (!all) _exit(3);
  });
  CHECK(status == 0);
}

TEST_CASE("in a child of fork each verb of the parent's pools and graphs throws at once",
          "[pools]") {
  const int status = statusOfChild([] {
    static SimWork work;
    static CachingAllocator allocator(work.device(), Options{});
    static Pools pools(allocator);
    static MemPool pool(pools);
    static Graph idle(pools), captured(pools);
    const Stream streams[] = {work.device().createStream().orThrow(),
                              work.device().createStream().orThrow(),
                              work.device().createStream().orThrow()};
    captured.captureBegin(streams[0]);
    (void)allocator.allocate(kMiB, streams[0]);
    captured.captureEnd();
    const MempoolId_t id = pool.id();
    const PoolCheckpoint checkpoint = pools.getCheckpointState(id);
    std::atomic<bool> stopped{false};
    std::latch begun(2);
    std::thread scopes([&] {
      useScope(pool, streams[0]);
      for (begun.count_down(); !stopped;) useScope(pool, streams[0]);
    });
    std::thread graphs([&] {
      useGraph(pools, streams[1]);
      for (begun.count_down(); !stopped;) useGraph(pools, streams[1]);
    });
    begun.wait();
    const bool all = allChildrenExit(40, [&] {
      const bool refused =
          isRefusedInChild([&] { (void)pool.allocate(kMiB, streams[0]); }) &&
          isRefusedInChild([&] { const MemPool another(pools); }) &&
          isRefusedInChild([&] { const MemPoolScope scope(pool); }) &&
          isRefusedInChild([&] { pools.createOrIncrefPool(id); }) &&
          isRefusedInChild([&] { pools.releasePool(id); }) &&
          isRefusedInChild([&] { (void)pools.getPoolUseCount(id); }) &&
          isRefusedInChild([&] { pools.beginAllocateToPool(id, PoolFilter::thisThread()); }) &&
          isRefusedInChild([&] { pools.endAllocateToPool(id); }) &&
          isRefusedInChild([&] { pools.setUseOnOOM(id, true); }) &&
          isRefusedInChild([&] { pools.emptyCache(id); }) &&
          isRefusedInChild([&] { pools.emptyUnowned(); }) &&
          isRefusedInChild([&] { (void)pools.checkPoolLiveAllocations(id, {}); }) &&
          isRefusedInChild([&] { (void)pools.getCheckpointState(id); }) &&
          isRefusedInChild([&] { (void)pools.setCheckpointPoolState(checkpoint); }) &&
          isRefusedInChild([&] { (void)pools.memoryStats(id); }) &&
          isRefusedInChild([&] { idle.captureBegin(streams[2]); }) &&
          isRefusedInChild([&] { captured.replay(streams[2]); });
      captured.reset();
      captured.abandon();
      if (!refused) _exit(3);
    });
    stopped = true;
    scopes.join();
    graphs.join();
    if (!all) _exit(3);
  });
  CHECK(status == 0);
}

}  // namespace cistern::test

#endif
