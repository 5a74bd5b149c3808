// What overflow says of itself: reports, peaks, statistics and snapshots.
#include "tests/pools/overflow_support.hpp"

namespace cistern::test {

TEST_CASE("the report names the blocks, and a limit that would have done",
          "[pools][overflow][pages]") {
  OverflowRig rig;
  const Stream s = rig.stream();
  CHECK(rig.allocator.overflow().text().find("the device had room") != std::string::npos);
  void* const first = rig.allocate(64 * kMiB, s);
  void* const small = rig.allocate(10 * kMiB, s);
  void* const large = rig.allocate(30 * kMiB, s);
  const OverflowReport report = rig.allocator.overflow();
  REQUIRE(report.blocks.size() == 2);
  CHECK(report.blocks[0].address == large);
  CHECK(report.blocks[0].bytes == 30 * kMiB);
  CHECK(report.blocks[1].address == small);
  CHECK(report.handed_out == 40 * kMiB);
  CHECK(report.reserved == rig.inHostNow());
  CHECK(report.would_do >= 104 * kMiB);
  CHECK(report.would_do <= 112 * kMiB);
  CHECK(report.text().find("30.00 MiB of pool {0, 0}") != std::string::npos);
  for (void* block : {first, small, large}) rig.free(block);
}

TEST_CASE("host memory that was made for a request that failed counts as reserved at most",
          "[pools][overflow][pages]") {
  bool stayed = false;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    OverflowRig rig(24 * kMiB, 64 * kMiB);
    void* const first = rig.allocate(20 * kMiB, Stream{});
    rig.sim().faults().failRandomly(0.2, seed, ErrorKind::kOutOfMemory);
    void* over = nullptr;
    try {
      over = rig.allocate(30 * kMiB, Stream{});
    } catch (const OutOfMemory&) {
    }
    rig.sim().faults().clear();
    const OverflowReport report = rig.allocator.overflow();
    stayed |= over == nullptr && report.reserved > 0;
    CHECK(report.most_reserved >= report.reserved);
    if (over != nullptr) rig.free(over);
    rig.free(first);
  }
  CHECK(stayed);
}

TEST_CASE("statistics and snapshots count host memory of overflow apart",
          "[pools][overflow][pages]") {
  OverflowRig rig;
  const Stream s = rig.stream();
  void* const first = rig.allocate(60 * kMiB, s);
  void* const over = rig.allocate(30 * kMiB, s);
  const MemoryStats stats = rig.allocator.memoryStats();
  CHECK(stats.host_page_bytes == rig.inHostNow());
  CHECK(stats.host_page_allocated_bytes == 26 * kMiB);
  CHECK(rig.allocator.hostBytesIn(over) == 26 * kMiB);
  CHECK(rig.allocator.hostBytesIn(first) == 0);
  CHECK(stats[Stat::kAllocatedBytes].current == std::int64_t(90 * kMiB));
  CHECK(std::uint64_t(stats[Stat::kReservedBytes].current) == takenOf(rig.sim()));
  CHECK(sumsOf(rig.allocator.snapshot()) == sumsOf(stats));
  std::size_t host = 0;
  std::uint64_t on_host = 0, mapped = 0;
  for (const SnapshotSegment& segment : rig.allocator.snapshot().segments) {
    host += segment.location == Location::kHost ? 1 : 0;
    for (const SnapshotBlock& block : segment.blocks) {
      on_host += block.on_host;
      if (block.use != BlockUse::kUnmapped) mapped += block.bytes;
      if (block.address == toAddress(over)) CHECK(block.on_host == 26 * kMiB);
      if (block.address == toAddress(first)) CHECK(block.on_host == 0);
    }
  }
  CHECK(host == 1);
  CHECK(on_host == rig.inHostNow());
  CHECK(mapped - on_host == takenOf(rig.sim()));
  rig.free(first);
  rig.free(over);
}

}  // namespace cistern::test
