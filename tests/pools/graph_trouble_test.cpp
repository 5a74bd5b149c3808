// What a capture must not do, and what is left of one that fails.
#include "tests/pools/pools_support.hpp"
#include "tests/support/temporary_file.hpp"

namespace cistern::test {
namespace {

/// Calls that wait, take memory from under an address, or put something into a graph. (A page that
/// was made for a request in vain is released, unseen.)
std::uint64_t forbiddenCalls(Device& device) {
  std::uint64_t calls = 0;
  for (const Call call :
       {Call::kFree, Call::kUnmap, Call::kSynchronizeStream, Call::kSynchronizeEvent,
        Call::kSynchronizeDevice, Call::kRecordEvent, Call::kWaitEvent}) {
    calls += countOf(device, call);
  }
  return calls;
}

std::size_t countIn(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("a capture makes no call that waits, frees or marks, even out of memory", "[pools]") {
  PoolRig rig("background_thread:false");
  const Stream s = rig.stream(), other = rig.stream();
  MemPool pool(rig.pools);
  for (const MempoolId_t id : {MempoolId_t{}, pool.id()}) {  // there is something to give back
    void* block = id == MempoolId_t{} ? rig.allocate(100 * kMiB, s) : pool.allocate(kMiB, s);
    rig.touch(s, block);
    rig.free(block);
  }
  Graph graph(rig.pools);
  GraphCapture capture(graph, s, pool.id());
  const std::uint64_t before = forbiddenCalls(rig.sim());
  for (const std::size_t bytes : {kKiB, 3 * kMiB, 40 * kMiB, 300 * kMiB}) rig.temporary(bytes, s);
  void* held = rig.written(64 * kMiB, s);
  CHECK(rig.outOfMemory(kGiB, s));
  rig.allocator.recordStream(held, other);
  rig.free(held);
  CHECK(forbiddenCalls(rig.sim()) == before);
  capture.end();
  graph.replay(s);
}

TEST_CASE("a captured graph consists of the program's work alone", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream(), side = rig.stream();
  Graph graph(rig.pools);
  GraphCapture capture(graph, s);
  void* block = rig.written(64 * kMiB, s);
  rig.join(side, s);
  rig.allocator.recordStream(block, side);
  rig.read(side, block);
  rig.free(block);
  rig.join(s, side);
  rig.temporary(64 * kMiB, s);
  CHECK(rig.outOfMemory(2 * kGiB, s));
  capture.end();
  const TemporaryFile file("graph.dot");
  graph.debugDump(file.path().string());
  CHECK(countIn(file.content(), "[label=") == 3);
  CHECK(countIn(file.content(), " -> ") == 3);
}

TEST_CASE("out of memory leaves a capture able to go on", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  Graph graph(rig.pools);
  GraphCapture capture(graph, s);
  void* first = rig.written(600 * kMiB, s);
  CHECK(rig.outOfMemory(600 * kMiB, s));
  CHECK(rig.sim().captureInfo(s).orThrow().status == CaptureStatus::kActive);
  CHECK(rig.holds(graph.pool(), {first}));
  rig.free(first);
  CHECK(rig.temporary(600 * kMiB, s) == first);
  capture.end();
  graph.replay(s);
}

TEST_CASE("out of memory leaves a capture that is abandoned without a trace, and the next works",
          "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  const std::uint64_t before = takenOf(rig.sim());
  Graph graph(rig.pools);
  MempoolId_t id;
  try {
    GraphCapture capture(graph, s);
    id = graph.pool();
    rig.temporary(600 * kMiB, s);
    void* block = rig.written(600 * kMiB, s);
    rig.free(block);
    rig.allocate(1100 * kMiB, s);
    FAIL("there was memory");
  } catch (const OutOfMemory&) {
  }
  CHECK(!graph.capturing());
  CHECK(graph.pool() == MempoolId_t{});
  CHECK(rig.sim().captureInfo(s).orThrow().status == CaptureStatus::kNone);
  CHECK(rig.allocator.poolFor(s) == MempoolId_t{});
  CHECK(!rig.known(id));
  CHECK(takenOf(rig.sim()) == before);
  GraphCapture capture(graph, s);
  rig.temporary(900 * kMiB, s);
  capture.end();
  graph.replay(s);
}

TEST_CASE("an abandoned capture leaves nothing", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  const std::uint64_t before = takenOf(rig.sim());
  Graph graph(rig.pools);
  MempoolId_t id;
  {
    GraphCapture capture(graph, s);
    id = graph.pool();
    rig.temporary(30 * kMiB, s);
    rig.temporary(kKiB, s);
  }
  CHECK(!rig.known(id));
  CHECK(reservedOf(rig.allocator) == 0);
  CHECK(takenOf(rig.sim()) == before);
}

TEST_CASE("an abandoned capture leaves a shared pool with the use and memory it had", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool pool(rig.pools);
  void* kept = pool.allocate(40 * kMiB, s);
  rig.touch(s, kept);
  const std::int64_t before = rig.reservedBy(pool.id());
  Graph graph(rig.pools);
  {
    const GraphCapture capture(graph, s, pool.id());
    rig.temporary(200 * kMiB, s);
  }
  CHECK(pool.useCount() == 1);
  CHECK(rig.reservedBy(pool.id()) == before);
  CHECK(rig.holds(pool.id(), {kept}));
  rig.touch(s, kept);
  rig.free(kept);
}

TEST_CASE("what an abandoned capture allocated and the program holds stays valid", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  Graph graph(rig.pools);
  void* held = nullptr;
  MempoolId_t id;
  {
    const GraphCapture capture(graph, s);
    id = graph.pool();
    held = rig.written(30 * kMiB, s);
  }
  CHECK(rig.pools.getPoolUseCount(id) == 0);
  rig.touch(s, held);
  rig.free(held);
  rig.finish();
  rig.pools.emptyCache(id);
  CHECK(!rig.known(id));
}

TEST_CASE("a stream that is not joined fails the capture, which unwinds", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream(), side = rig.stream();
  MemPool pool(rig.pools);
  Graph graph(rig.pools);
  graph.captureBegin(s, pool.id());
  rig.temporary(kMiB, s);
  rig.join(side, s);
  rig.temporary(100 * kMiB, side);
  CHECK_THROWS_AS(graph.captureEnd(), DeviceFailure);
  CHECK(!graph.capturing());
  CHECK(pool.useCount() == 1);
  CHECK(rig.reservedBy(pool.id()) == 0);
  for (const Stream each : {s, side}) CHECK(rig.allocator.poolFor(each) == MempoolId_t{});
  rig.temporary(kMiB, s);
  graph.captureBegin(s, pool.id());
  rig.temporary(kMiB, s);
  graph.captureEnd();
  graph.replay(s);
}

}  // namespace cistern::test
