// What is pinned for which requests, and what is counted.
#include <map>
#include <vector>

#include "tests/pinned/pinned_support.hpp"

namespace cistern::test {

TEST_CASE("pinned memory is cut to what is asked for", "[pinned]") {
  PinnedRig rig;
  for (const std::uint64_t bytes : {1 * kMiB + 1, 20 * kMiB + 400 * kKiB, 33 * kMiB, 65 * kMiB}) {
    void* const block = rig.pinned.allocate(bytes);
    PinnedRig::write(block, bytes, bytes);
    CHECK(toAddress(block) % 512 == 0);
    CHECK(rig.pinned.blockSize(block) - bytes < 512);
    CHECK(std::uint64_t(rig.reserved()) - bytes < 2 * kMiB);
    rig.pinned.free(block);
    rig.pinned.emptyCache();
    CHECK(rig.reserved() == 0);
  }
  CHECK(rig.pinned.allocate(0) == nullptr);
  rig.pinned.free(nullptr);
}

TEST_CASE("pieces tell every block, and add up to what is pinned", "[pinned]") {
  PinnedRig rig;
  CHECK(rig.pinned.pieces().empty());
  void* const held = rig.pinned.allocate(3 * kMiB);
  const Stream on = rig.stream();
  void* const pending = rig.freedInUse(on, 2048);
  std::uint64_t bytes = 0;
  std::map<Address, PinnedPiece> pieces;
  for (const PinnedPiece& piece : rig.pinned.pieces()) {
    bytes += piece.bytes;
    pieces[piece.address] = piece;
  }
  CHECK(std::int64_t(bytes) == rig.reserved());
  CHECK(pieces[toAddress(held)].use == BlockUse::kAllocated);
  CHECK(pieces[toAddress(held)].bytes == 3 * kMiB);
  CHECK(pieces[toAddress(pending)].use == BlockUse::kPending);
  CHECK(pieces[toAddress(pending)].bytes == 2048);
  CHECK(pieces.size() == 4);  // and the rest of each segment
  rig.pinned.free(held);
  rig.sync(on);
}

TEST_CASE("small requests share a segment", "[pinned]") {
  PinnedRig rig;
  std::vector<void*> blocks;
  for (int i = 0; i < 1024; ++i) blocks.push_back(rig.pinned.allocate(2048));
  CHECK(rig.reserved() == std::int64_t(2 * kMiB));
  CHECK(rig.calls(Call::kHostMalloc) == 1);
  for (void* block : blocks) rig.pinned.free(block);
  void* const whole = rig.pinned.allocate(kMiB);
  CHECK(rig.calls(Call::kHostMalloc) == 1);
  rig.pinned.free(whole);
}

TEST_CASE("what is freed is split for smaller requests, and joined again", "[pinned]") {
  PinnedRig rig;
  void* const whole = rig.pinned.allocate(64 * kMiB);
  rig.pinned.free(whole);
  std::vector<void*> parts;
  for (int i = 0; i < 16; ++i) parts.push_back(rig.pinned.allocate(4 * kMiB));
  CHECK(rig.calls(Call::kHostMalloc) == 1);
  for (std::size_t i = 0; i < parts.size(); i += 2) rig.pinned.free(parts[i]);
  for (std::size_t i = 1; i < parts.size(); i += 2) rig.pinned.free(parts[i]);
  CHECK(rig.pinned.allocate(64 * kMiB) == whole);
  CHECK(rig.calls(Call::kHostMalloc) == 1);
}

TEST_CASE("sizes that grow leave nothing behind", "[pinned]") {
  PinnedRig rig;
  std::uint64_t bytes = 4 * kMiB;
  for (int i = 0; i < 300; ++i, bytes += bytes / 100) rig.pinned.free(rig.pinned.allocate(bytes));
  CHECK(std::uint64_t(rig.pinned.stats().reserved_bytes.peak) < bytes + 2 * kMiB);
  CHECK(rig.pinned.stats().segment.current == 1);
}

TEST_CASE("what is counted is exact", "[pinned]") {
  PinnedRig rig;
  void* const one = rig.pinned.allocate(1'000);
  void* const two = rig.pinned.allocate(3 * kMiB);
  PinnedStats stats = rig.pinned.stats();
  CHECK(stats.allocation.current == 2);
  CHECK(stats.segment.current == 2);
  CHECK(stats.requested_bytes.current == std::int64_t(1'000 + 3 * kMiB));
  CHECK(stats.allocated_bytes.current == std::int64_t(1'024 + 3 * kMiB));
  CHECK(stats.active_bytes.current == stats.allocated_bytes.current);
  CHECK(stats.reserved_bytes.current == std::int64_t(6 * kMiB));
  CHECK(stats.num_host_alloc == 2);
  CHECK(stats.host_bytes > 0);
  rig.pinned.free(two);
  rig.pinned.resetPeakStats();
  rig.pinned.resetAccumulatedStats();
  stats = rig.pinned.stats();
  CHECK(stats.allocated_bytes.peak == 1'024);
  CHECK(stats.allocated_bytes.allocated == 0);
  CHECK(stats.allocation.freed == 0);
  rig.pinned.free(one);
  rig.pinned.emptyCache();
  stats = rig.pinned.stats();
  CHECK(stats.allocation.freed == 1);
  CHECK(stats.requested_bytes.current == 0);
  CHECK(stats.reserved_bytes.current == 0);
  CHECK(stats.segment.current == 0);
  CHECK(stats.num_host_free == 2);
}

TEST_CASE("a pointer is told whose it is", "[pinned]") {
  PinnedRig rig;
  int other = 0;
  void* const block = rig.pinned.allocate(5'000);
  CHECK(rig.pinned.isBlock(block));
  CHECK(!rig.pinned.isBlock(static_cast<std::byte*>(block) + 512));
  CHECK(!rig.pinned.isBlock(&other));
  CHECK(!rig.pinned.isBlock(nullptr));
  CHECK_THROWS_WITH(rig.pinned.blockSize(&other),
                    Catch::Matchers::ContainsSubstring("never gave it out"));
  rig.pinned.free(block);
  CHECK(!rig.pinned.isBlock(block));
  CHECK_THROWS_AS(rig.pinned.blockSize(block), InvalidArgument);
}

}  // namespace cistern::test
