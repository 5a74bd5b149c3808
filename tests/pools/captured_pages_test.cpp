// A page that a graph has captured, once it lies free, serves other work of its pool at other
// addresses, while the graph goes on reaching it where it was.
#include <algorithm>

#include "tests/pools/unwind_support.hpp"
#include "tests/support/skipped.hpp"

namespace cistern::test {
namespace {

/// Holes of 24 MiB between blocks that are kept, which a graph has captured.
struct Holes {
  static constexpr std::size_t kCount = 4, kBytes = 24 * kMiB;

  Holes(DeviceWork& work, CachingAllocator& of, Stream stream, std::uint32_t seed) : allocator(of) {
    std::vector<void*> passing;
    for (std::uint32_t i = 0; i < kCount; ++i) {
      passing.push_back(allocator.allocate(kBytes, stream));
      work.fill(stream, toAddress(passing.back()), kBytes, seed + i);
      kept.push_back(allocator.allocate(2 * kMiB, stream));
      work.fill(stream, toAddress(kept.back()), 2 * kMiB, seed + 100 + i);
    }
    for (std::uint32_t i = 0; i < kCount; ++i) {
      work.verify(stream, toAddress(passing[i]), kBytes, seed + i);
      allocator.free(passing[i]);
    }
  }
  ~Holes() {
    for (void* block : kept) allocator.free(block);
  }
  void verify(DeviceWork& work, Stream stream, std::uint32_t seed) {
    for (std::uint32_t i = 0; i < kCount; ++i) {
      work.verify(stream, toAddress(kept[i]), 2 * kMiB, seed + 100 + i);
    }
  }
  CachingAllocator& allocator;
  std::vector<void*> kept;
};

// One block that takes the pages of all the holes.
constexpr std::size_t kWide = Holes::kCount * Holes::kBytes;

void wide(DeviceWork& work, CachingAllocator& allocator, Stream stream, std::uint32_t seed) {
  void* block = allocator.allocate(kWide, stream);
  work.fill(stream, toAddress(block), kWide, seed);
  work.verify(stream, toAddress(block), kWide, seed);
  allocator.free(block);
}

std::uint64_t moved(const CachingAllocator& allocator) {
  const PageCounts pages = allocator.memoryStats().pages;
  return pages.recycled + pages.revived;
}

/// A graph that leaves holes, and a rig to go on with.
struct HolesRig : PoolRig {
  explicit HolesRig(std::string_view conf = "backing:pages,page_size:2M")
      : PoolRig(conf), s(stream()), pool(pools), first(pools) {
    GraphCapture capture(first, s, pool.id());
    holes.emplace(work, allocator, s, 1);
    capture.end();
  }
  Stream s;
  MemPool pool;
  Graph first;
  std::optional<Holes> holes;
};

}  // namespace

TEST_CASE("graphs that share pages at different addresses keep every word, as does eager work",
          "[pools][pages][gpu-too]") {
  forEachBackend([](DeviceWork& work) {
    INFO("backend: " << work.device().backend());
    if (!work.device().virtualMemory().supported)
      return skipped("no pages on " + work.device().backend());
    CachingAllocator allocator(work.device(), optionsOf("backing:pages,page_size:2M"));
    {
      Pools pools(allocator);
      const Streams streams(work.device(), 1);
      const Stream s = streams[0];
      MemPool pool(pools);
      Graph first(pools), second(pools);
      GraphCapture capturing(first, s, pool.id());
      Holes holes(work, allocator, s, 1);
      capturing.end();
      const std::int64_t reserved = reservedOf(allocator);
      {
        GraphCapture capture(second, s, pool.id());
        wide(work, allocator, s, 1'000);
        capture.end();
      }
      CHECK(reservedOf(allocator) == reserved);
      CHECK(moved(allocator) > 0);
      for (int round = 0; round < 8; ++round) {
        first.replay(s);
        second.replay(s);
        if (round % 2 == 0) {
          const MemPoolScope scope(pool);
          wide(work, allocator, s, 2'000);
        }
        holes.verify(work, s, 1);
        if (round % 3 == 0) allocator.emptyCache();
      }
      work.device().synchronizeDevice().orThrow();
      CHECK(work.mismatches() == 0);
      CHECK(reservedOf(allocator) == reserved);
      allocator.audit();
    }
    allocator.emptyCache();
    CHECK(reservedOf(allocator) == 0);
  });
}

TEST_CASE("a capture moves what it has itself captured and freed", "[pools][pages][long]") {
  HolesRig rig;
  const std::int64_t reserved = rig.reservedBy(rig.pool.id());
  Graph graph(rig.pools);
  GraphCapture capture(graph, rig.s, rig.pool.id());
  const Holes holes(rig.work, rig.allocator, rig.s, 10);
  wide(rig.work, rig.allocator, rig.s, 1'000);
  const std::int64_t twice = rig.reservedBy(rig.pool.id());
  wide(rig.work, rig.allocator, rig.s, 2'000);
  capture.end();
  CHECK(twice <= reserved + mib(16));
  CHECK(rig.reservedBy(rig.pool.id()) == twice);
  for (int round = 0; round < 3; ++round) {
    rig.first.replay(rig.s);
    graph.replay(rig.s);
  }
  rig.finish();
  CHECK(rig.work.mismatches() == 0);
}

TEST_CASE("what a graph reaches stays mapped while its page is elsewhere, and goes with the graph",
          "[pools][pages]") {
  HolesRig rig("backing:pages,page_size:2M,background_thread:false");
  Graph second(rig.pools);
  {
    GraphCapture capture(second, rig.s, rig.pool.id());
    wide(rig.work, rig.allocator, rig.s, 1'000);
    capture.end();
  }
  // Stale mappings come to be many, so that all go that may.
  Graph third(rig.pools);
  {
    GraphCapture capture(third, rig.s, rig.pool.id());
    for (std::size_t bytes = 6 * kMiB; bytes < kWide; bytes += 6 * kMiB) {
      rig.temporary(bytes, rig.s);
    }
    capture.end();
  }
  third.reset();
  second.reset();
  rig.pools.emptyCache(rig.pool.id());
  rig.temporary(200 * kMiB, rig.s);
  rig.first.replay(rig.s);
  rig.finish();
  CHECK(rig.work.mismatches() == 0);
  rig.holes.reset();
  rig.first.reset();
  rig.pools.emptyCache(rig.pool.id());
  rig.allocator.emptyCache();
  CHECK(reservedOf(rig.allocator) == 0);
  CHECK(takenOf(rig.sim()) == 0);
}

TEST_CASE("a page that a graph reaches from another address leaves its pool for nobody",
          "[pools][pages][long]") {
  HolesRig rig;
  Graph second(rig.pools);
  {
    GraphCapture capture(second, rig.s, rig.pool.id());
    wide(rig.work, rig.allocator, rig.s, 1'000);
    capture.end();
  }
  second.reset();
  rig.pools.setUseOnOOM(rig.pool.id(), true);
  const std::int64_t before = rig.reservedBy(rig.pool.id());
  const Stream other = rig.stream();
  CHECK(rig.outOfMemory(kGiB - 90 * kMiB, other));
  CHECK(rig.reservedBy(rig.pool.id()) == before);
  rig.first.replay(rig.s);
  rig.finish();
  CHECK(rig.work.mismatches() == 0);
}

TEST_CASE("an abandoned capture that had moved pages of a graph leaves the graph as it was",
          "[pools][pages]") {
  HolesRig rig;
  const std::int64_t reserved = rig.reservedBy(rig.pool.id());
  {
    Graph second(rig.pools);
    GraphCapture capture(second, rig.s, rig.pool.id());
    wide(rig.work, rig.allocator, rig.s, 1'000);
    wide(rig.work, rig.allocator, rig.s, 2'000);
  }
  CHECK(moved(rig.allocator) > 0);
  CHECK(rig.reservedBy(rig.pool.id()) == reserved);
  rig.allocator.audit();
  rig.first.replay(rig.s);
  rig.finish();
  CHECK(rig.work.mismatches() == 0);
}

TEST_CASE("a pool is set back to blocks whose pages have moved since", "[pools][pages]") {
  HolesRig rig;
  MemPoolScope scope(rig.pool);
  const PoolCheckpoint apart = rig.pools.getCheckpointState(rig.pool.id());
  void* narrow = rig.allocate(Holes::kBytes, rig.s);
  const PoolCheckpoint one = rig.pools.getCheckpointState(rig.pool.id());
  rig.free(narrow);
  Graph second(rig.pools);
  GraphCapture capture(second, rig.s, rig.pool.id());
  void* block = rig.written(kWide, rig.s);
  capture.end();
  const PoolCheckpoint other = rig.pools.getCheckpointState(rig.pool.id());
  for (int round = 0; round < 3; ++round) {
    CheckpointDelta delta = rig.pools.setCheckpointPoolState(one);
    CHECK(delta.freed == std::vector<void*>{block});
    CHECK(delta.made == std::vector<void*>{narrow});
    rig.allocator.audit();
    rig.touch(rig.s, narrow);
    delta = rig.pools.setCheckpointPoolState(other);
    CHECK(delta.freed == std::vector<void*>{narrow});
    CHECK(delta.made == std::vector<void*>{block});
    rig.allocator.audit();
    rig.touch(rig.s, block);
  }
  (void)rig.pools.setCheckpointPoolState(apart);
  rig.first.replay(rig.s);
  second.replay(rig.s);
  rig.finish();
  CHECK(rig.work.mismatches() == 0);
}

TEST_CASE("a pool is set back to blocks whose pages another stream of the pool has used since",
          "[pools][pages]") {
  HolesRig rig;
  const Stream t = rig.stream();
  MemPoolScope scope(rig.pool);
  void* narrow = rig.written(Holes::kBytes, rig.s);
  const PoolCheckpoint one = rig.pools.getCheckpointState(rig.pool.id());
  rig.free(narrow);
  rig.finish();
  void* block = rig.written(kWide, t);
  CHECK(moved(rig.allocator) > 0);
  const CheckpointDelta delta = rig.pools.setCheckpointPoolState(one);
  CHECK(delta.freed == std::vector<void*>{block});
  rig.touch(rig.s, narrow);  // after what t has queued
  rig.allocator.audit();
  rig.free(narrow);
}

TEST_CASE("a pool is not set back to blocks of which one page would be at two places",
          "[pools][pages]") {
  HolesRig rig;
  MemPoolScope scope(rig.pool);
  void* narrow = rig.allocate(Holes::kBytes, rig.s);
  PoolCheckpoint both = rig.pools.getCheckpointState(rig.pool.id());
  rig.free(narrow);
  void* block = rig.written(kWide, rig.s);
  const PoolCheckpoint other = rig.pools.getCheckpointState(rig.pool.id());
  for (const LiveBlock& live : other.blocks) {
    if (live.bytes == kWide) both.blocks.push_back(live);
  }
  std::sort(both.blocks.begin(), both.blocks.end(),
            [](const LiveBlock& a, const LiveBlock& b) { return a.address < b.address; });
  rig.free(block);
  CHECK(refusedFor(rig.pool.id(), "its memory has left the pool",
                   [&] { (void)rig.pools.setCheckpointPoolState(both); }));
  rig.allocator.audit();
}

// Blocks of either kind are found in a table of their own, and what goes home comes into another
// than it has left.
TEST_CASE("a page goes home to large blocks, however many of those there are", "[pools][pages]") {
  for (int held = 0; held < 30; ++held) {
    INFO(held << " are held");
    PoolRig rig("page_size:2M,background_thread:false");
    const Stream stream = rig.stream();
    const MemPool pool(rig.pools);
    const auto allocate = [&](std::size_t bytes) {
      return rig.pools.allocate(bytes, stream, pool.id());
    };
    void* page = allocate(2 * kMiB);
    allocate(2 * kMiB);
    void* many = allocate(64 * kMiB);
    rig.free(page);
    void* small = allocate(kMiB);  // where that was
    rig.free(many);
    for (int i = 0; i < held; ++i) allocate(2 * kMiB);
    rig.free(small);
    Graph graph(rig.pools);
    graph.captureBegin(stream, pool.id());
    graph.abandon();
    CHECK(allocate(2 * kMiB) == page);
    rig.allocator.audit();
  }
}

}  // namespace cistern::test
