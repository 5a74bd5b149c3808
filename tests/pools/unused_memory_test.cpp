// An OutOfMemory says of all that lies free why it did not serve the request.
#include "tests/pools/pools_support.hpp"

namespace cistern::test {
namespace {

using Catch::Matchers::ContainsSubstring;

/// 60 MiB, of which one pool's blocks of 1.5 MiB take all, and every other one of them is free.
struct PiecesRig : PoolRig {
  explicit PiecesRig(const std::string& conf = "")
      : PoolRig("limit:60MiB,thread_cache:off" + conf) {}
  ~PiecesRig() {
    for (void* block : held) free(block);
  }
  void crumble(MempoolId_t pool, Stream of) {
    std::vector<void*> blocks;
    try {
      for (;;) blocks.push_back(pools.allocate(kBytes, of, pool));
    } catch (const OutOfMemory&) {
    }
    std::ranges::sort(blocks, {}, [](void* block) { return toAddress(block); });
    for (std::size_t i = 0; i < blocks.size(); ++i)
      i % 2 == 0 ? free(blocks[i]) : held.push_back(blocks[i]);
  }
  static constexpr std::size_t kBytes = 1536 * kKiB;
  std::vector<void*> held;
};

OutOfMemoryReport refusal(PoolRig& rig, std::size_t bytes, Stream stream, MempoolId_t pool = {}) {
  try {
    (void)(pool == MempoolId_t{} ? rig.allocate(bytes, stream)
                                 : rig.pools.allocate(bytes, stream, pool));
  } catch (const OutOfMemory& full) {
    return full.report();
  }
  FAIL("it was served");
  return {};
}

std::uint64_t freeOf(const OutOfMemoryReport& report) {
  std::uint64_t free = 0;
  for (const HeapReport& heap : report.heaps) free += heap.free;
  return free;
}

/// All that is free is so for this reason, and the advice says it.
void checkOnly(const OutOfMemoryReport& report, WhyUnused why, const std::string& text) {
  REQUIRE(report.unused.size() == 1);
  CHECK(report.unused[0].why == why);
  CHECK(report.unused[0].bytes == freeOf(report));
  CHECK(report.unused[0].bytes > 0);
  CHECK_THAT(report.advice(), ContainsSubstring(text));
}

}  // namespace

TEST_CASE("memory in small pieces is said to be so", "[pools]") {
  PiecesRig rig;
  MemPool pool(rig.pools);
  rig.crumble(pool.id(), Stream{});
  const OutOfMemoryReport report = refusal(rig, 4 * kMiB, Stream{}, pool.id());
  checkOnly(report, WhyUnused::kTooSmall, "is free in pieces that are too small; the largest is ");
  CHECK(report.unused[0].largest < 4 * kMiB);
}

TEST_CASE("memory of another stream is said to be so", "[pools]") {
  PiecesRig rig(",cross_stream_reuse:false");
  MemPool pool(rig.pools);
  rig.crumble(pool.id(), rig.stream());
  checkOnly(refusal(rig, kMiB, Stream{}, pool.id()), WhyUnused::kOtherStream,
            "is free on other streams, and cross_stream_reuse is off.");
}

TEST_CASE("memory that another stream's queued work uses is said to be so", "[pools]") {
  PiecesRig rig;
  MemPool pool(rig.pools);
  const Stream own = rig.stream(), other = rig.stream();
  rig.allocator.registerStream(own);
  rig.neverEnd(other);
  rig.crumble(pool.id(), other);
  rig.sim().faults().failAll(Call::kWaitEvent);  // or the stream would be ordered after the work
  checkOnly(refusal(rig, kMiB, own, pool.id()), WhyUnused::kIncomplete,
            "is free on other streams, but their queued work may still use it.");
  rig.sim().faults().clear();
}

TEST_CASE("memory of another pool is said to be so", "[pools]") {
  PiecesRig rig;
  MemPool pool(rig.pools);
  rig.crumble(pool.id(), Stream{});
  checkOnly(refusal(rig, kMiB, Stream{}), WhyUnused::kOtherPool,
            "is free in other pools, which keep it.");
}

TEST_CASE("memory that a graph holds is said to be so", "[pools]") {
  PoolRig rig("limit:64MiB");
  const Stream s = rig.stream();
  Graph graph(rig.pools);
  GraphCapture capture(graph, s, {}, CaptureMode::kRelaxed);
  rig.temporary(40 * kMiB, s);
  capture.end();
  checkOnly(refusal(rig, 30 * kMiB, Stream{}), WhyUnused::kHeldInPlace,
            "is free, but a graph, another process or a hold keeps it in place.");
}

TEST_CASE("memory that is kept whole for larger requests is said to be so", "[pools]") {
  PoolRig rig("backing:segments,limit:64MiB,max_split_size:20MiB");
  const Stream s = rig.stream();
  MemPool pool(rig.pools);
  Graph graph(rig.pools);
  GraphCapture capture(graph, s, pool.id(), CaptureMode::kRelaxed);
  rig.temporary(64 * kMiB, s);
  capture.end();
  checkOnly(refusal(rig, 5 * kMiB, s, pool.id()), WhyUnused::kKeptWhole,
            "is free in blocks that max_split_size keeps for larger requests.");
}

TEST_CASE("what is free is not said where it would not have been enough", "[pools]") {
  PoolRig rig("limit:64MiB");
  MemPool pool(rig.pools);
  void* const held = rig.allocate(50 * kMiB, Stream{});
  void* const small = pool.allocate(kKiB, Stream{});
  CHECK(refusal(rig, 40 * kMiB, Stream{}).advice() ==
        "A limit higher by 28.00 MiB would have made it fit.");
  rig.free(held);
  rig.free(small);
}

}  // namespace cistern::test
