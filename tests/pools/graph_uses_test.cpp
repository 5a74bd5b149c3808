// Blocks that several streams of a capture use: free again when the graph's own order allows it.
// Sizes are whole pages, and there is no other free memory, so that addresses tell.
#include "tests/pools/pools_support.hpp"

namespace cistern::test {
namespace {

constexpr std::size_t kBlock = 64 * kMiB;

/// `count` streams that follow `first`.
std::vector<Stream> fork(PoolRig& rig, Stream first, int count) {
  std::vector<Stream> sides;
  for (int i = 0; i < count; ++i) {
    sides.push_back(rig.stream());
    rig.join(sides.back(), first);
  }
  return sides;
}

}  // namespace

TEST_CASE("a block used on other streams of the capture is not reused before all have joined",
          "[pools]") {
  for (const int others : {1, 3}) {
    INFO(others + 1 << " streams");
    PoolRig rig;
    const Stream s = rig.stream();
    Graph graph(rig.pools);
    GraphCapture capture(graph, s);
    void* block = rig.written(kBlock, s);
    const std::vector<Stream> sides = fork(rig, s, others);
    for (const Stream side : sides) {
      rig.allocator.recordStream(block, side);
      rig.touch(side, rig.allocate(512, side));
      rig.read(side, block);
    }
    rig.free(block);
    std::vector<void*> held;
    for (const Stream side : sides) {
      held.push_back(rig.written(kBlock, s));
      CHECK(held.back() != block);
      CHECK(rig.reservedBy(graph.pool()) >= std::int64_t((held.size() + 1) * kBlock));
      rig.join(s, side);
    }
    const std::int64_t before = rig.reservedBy(graph.pool());
    CHECK(rig.written(kBlock, s) == block);
    CHECK(rig.reservedBy(graph.pool()) == before);
    capture.end();
    graph.replay(s);
    graph.replay(s);
  }
}

TEST_CASE("another stream that follows all users of a deferred block takes it", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  Graph graph(rig.pools);
  GraphCapture capture(graph, s);
  void* block = rig.written(kBlock, s);
  const std::vector<Stream> sides = fork(rig, s, 2);
  rig.allocator.recordStream(block, sides[0]);
  rig.read(sides[0], block);
  rig.free(block);
  void* early = rig.temporary(kBlock, sides[1]);
  CHECK(early != block);
  rig.join(sides[1], sides[0]);
  void* rest = rig.written(kBlock, sides[1]);
  void* late = rig.written(kBlock, sides[1]);
  CHECK((rest == block || late == block));
  CHECK(rig.reservedBy(graph.pool()) == std::int64_t(2 * kBlock));
  rig.join(s, sides[1]);
  capture.end();
  graph.replay(s);
}

TEST_CASE("a block whose users never join in the capture is free after it", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream(), outside = rig.stream();
  MemPool pool(rig.pools);
  Graph graph(rig.pools);
  GraphCapture capture(graph, s, pool.id());
  void* block = rig.written(kBlock, s);
  rig.allocator.recordStream(block, outside);  // which is not captured
  rig.free(block);
  CHECK(rig.written(kBlock, s) != block);
  capture.end();
  rig.finish();
  CHECK(pool.allocate(kBlock, s) == block);
  CHECK(rig.reservedBy(pool.id()) == std::int64_t(2 * kBlock));
  graph.replay(s);
}

TEST_CASE("no use recorded in a capture becomes an event of its graph", "[pools]") {
  PoolRig rig("background_thread:false");
  const Stream s = rig.stream();
  Graph graph(rig.pools);
  GraphCapture capture(graph, s);
  void* block = rig.written(kBlock, s);
  const Stream side = fork(rig, s, 1)[0];
  const std::uint64_t recorded = countOf(rig.sim(), Call::kRecordEvent);
  const std::uint64_t created = countOf(rig.sim(), Call::kCreateEvent);
  rig.allocator.recordStream(block, side);
  rig.read(side, block);
  rig.free(block);
  rig.temporary(kBlock, s);
  CHECK(countOf(rig.sim(), Call::kRecordEvent) == recorded);
  CHECK(countOf(rig.sim(), Call::kCreateEvent) == created);
  rig.join(s, side);
  capture.end();
  graph.replay(s);
}

TEST_CASE("a default pool's block that a capture uses, freed meanwhile, is free after it",
          "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream(), other = rig.stream();
  void* block = rig.written(kBlock, other);
  Graph graph(rig.pools);
  GraphCapture capture(graph, s);
  rig.allocator.recordStream(block, s);
  const std::uint64_t recorded = countOf(rig.sim(), Call::kRecordEvent);
  rig.free(block);
  CHECK(countOf(rig.sim(), Call::kRecordEvent) == recorded);
  void* meanwhile = rig.written(kBlock, other);
  CHECK(meanwhile != block);
  CHECK(rig.sim().captureInfo(s).orThrow().status == CaptureStatus::kActive);
  rig.temporary(kMiB, s);
  capture.end();
  rig.finish();
  void* after = rig.written(kBlock, other);
  CHECK(after == block);
  rig.free(after);
  rig.free(meanwhile);
  graph.replay(s);
}

TEST_CASE("a block that queued work used before a capture is not reused in it, but afterwards",
          "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool pool(rig.pools);
  void* block = pool.allocate(kBlock, s);
  rig.touch(s, block);
  Graph graph(rig.pools);
  GraphCapture capture(graph, s, pool.id());
  rig.touch(s, block);
  rig.free(block);
  CHECK(rig.temporary(kBlock, s) != block);
  capture.end();
  graph.replay(s);
  rig.finish();
  void* first = pool.allocate(kBlock, s);
  void* second = pool.allocate(kBlock, s);
  CHECK((first == block || second == block));
  rig.free(first);
  rig.free(second);
}

}  // namespace cistern::test
