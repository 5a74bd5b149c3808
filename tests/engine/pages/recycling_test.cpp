// Pages that lie free are used where they are needed, in stream order.
#include "tests/engine/pages/pages_support.hpp"

namespace cistern::test {
namespace {

constexpr const char* kEager = "recycle:eager,background_thread:false";

/// Two blocks freed with work queued on them and one held between, so that a request as large as
/// both is served only when pages move: on a device that lags a millisecond behind.
struct Torn {
  explicit Torn(const char* conf = kEager) : rig(conf, simOf(kGiB, 1'000'000)) {
    for (void* block : {low, held, high}) rig.touch(stream, block);
    rig.allocator.free(low);
    rig.allocator.free(high);
  }
  SimRig rig;
  Stream stream = rig.stream();
  void* low = rig.allocator.allocate(16 * kMiB, stream);
  void* held = rig.allocator.allocate(2 * kMiB, stream);
  void* high = rig.allocator.allocate(16 * kMiB, stream);
};

}  // namespace

TEST_CASE("pages of freed blocks serve a larger request while queued work still uses them",
          "[engine][pages]") {
  Torn t;
  const PageCounts before = pagesOf(t.rig.allocator);
  const std::uint64_t waited = waits(t.rig.sim()), now = t.rig.sim().now();
  void* large = t.rig.allocator.allocate(32 * kMiB, t.stream);
  t.rig.touch(t.stream, large);
  CHECK(t.rig.sim().now() < now + 1'000'000);  // the old work is still queued
  CHECK(waits(t.rig.sim()) == waited);
  CHECK(reservedOf(t.rig.allocator) == mib(34));
  CHECK(pagesOf(t.rig.allocator).created == before.created);
  CHECK(pagesOf(t.rig.allocator).recycled >= before.recycled + 8);
  checkAtRest(t.rig);
}

TEST_CASE("without recycling a request that pages of freed blocks would serve grows",
          "[engine][pages]") {
  Torn t("recycle:off,background_thread:false");
  const PageCounts before = pagesOf(t.rig.allocator);
  t.rig.touch(t.stream, t.rig.allocator.allocate(32 * kMiB, t.stream));
  CHECK(reservedOf(t.rig.allocator) >= mib(34 + 16));
  CHECK(pagesOf(t.rig.allocator).recycled == before.recycled);
}

TEST_CASE("addresses that pages have left are not handed out while work there is queued",
          "[engine][pages]") {
  Torn t;
  t.rig.work.delay(t.stream, kLongNs);
  void* large = t.rig.allocator.allocate(32 * kMiB, t.stream);
  void* stale = overlap(large, 32 * kMiB, t.low, 16 * kMiB) ? t.high : t.low;
  REQUIRE_FALSE(overlap(large, 32 * kMiB, stale, 16 * kMiB));
  const std::uint64_t unmapped = countOf(t.rig.sim(), Call::kUnmap);
  const Stream other = t.rig.stream();
  for (int i = 0; i < 20; ++i) {
    for (Stream stream : {t.stream, other}) {
      const std::size_t bytes = std::size_t(1 + i % 9) * 2 * kMiB;
      void* block = t.rig.allocator.allocate(bytes, stream);
      CHECK_FALSE(overlap(block, bytes, stale, 16 * kMiB));
      t.rig.touch(stream, block);
    }
  }
  CHECK(countOf(t.rig.sim(), Call::kUnmap) == unmapped);
}

TEST_CASE("what is written at the new address is right, and what was held stays",
          "[engine][pages]") {
  Torn t;
  SimWork& work = t.rig.work;
  work.fill(t.stream, toAddress(t.held), 2 * kMiB, 1);
  for (std::uint32_t round = 0; round < 6; ++round) {
    void* large = t.rig.allocator.allocate(32 * kMiB, t.stream);
    work.fill(t.stream, toAddress(large), 32 * kMiB, round * 77);
    work.verify(t.stream, toAddress(large), 32 * kMiB, round * 77);
    t.rig.allocator.free(large);
    std::vector<void*> parts;
    for (std::uint32_t i = 0; i < 4; ++i) {
      parts.push_back(t.rig.allocator.allocate(6 * kMiB, t.stream));
      work.fill(t.stream, toAddress(parts.back()), 6 * kMiB, i);
    }
    for (std::uint32_t i = 0; i < 4; ++i) {
      work.verify(t.stream, toAddress(parts[i]), 6 * kMiB, i);
      t.rig.allocator.free(parts[i]);
    }
  }
  work.verify(t.stream, toAddress(t.held), 2 * kMiB, 1);
  CHECK(work.mismatches() == 0);
}

TEST_CASE("a mapping whose page is free again is taken back into use without a call",
          "[engine][pages]") {
  SimRig rig(kEager, simOf(kGiB, 1'000'000));
  const Stream s = rig.stream();
  CachingAllocator& allocator = rig.allocator;
  void* a = allocator.allocate(16 * kMiB, s);
  void* c = allocator.allocate(16 * kMiB, s);
  void* held = allocator.allocate(2 * kMiB, s);
  rig.touch(s, a);
  allocator.free(a);
  void* moved = allocator.allocate(20 * kMiB, s);  // a's pages, behind what is held, and two more
  rig.touch(s, moved);
  rig.touch(s, c);
  allocator.free(moved);
  allocator.free(c);
  const std::uint64_t calls = mappingCalls(rig.sim());
  const PageCounts before = pagesOf(allocator);
  void* both = allocator.allocate(32 * kMiB, s);
  CHECK(both == a);
  rig.touch(s, both);
  CHECK(mappingCalls(rig.sim()) == calls);
  CHECK(pagesOf(allocator).revived == before.revived + 8);
  rig.touch(s, held);
  checkAtRest(rig);
}

TEST_CASE("pages stay where the first low water finds them, and go back there without a call",
          "[engine][pages]") {
  Torn t;
  CachingAllocator& allocator = t.rig.allocator;
  void* large = allocator.allocate(32 * kMiB, t.stream);
  t.rig.touch(t.stream, large);
  allocator.free(large);
  allocator.free(t.held);  // all is free: where the pages are now is their home
  CHECK(pagesOf(allocator).revived == 0);
  void* low = allocator.allocate(8 * kMiB, t.stream);
  void* held = allocator.allocate(8 * kMiB, t.stream);
  void* high = allocator.allocate(18 * kMiB, t.stream);
  CHECK(low == t.held);  // where the 34 MiB begin that lie free in one piece
  for (void* block : {low, held, high}) t.rig.touch(t.stream, block);
  for (void* block : {low, high}) allocator.free(block);
  void* both = allocator.allocate(26 * kMiB, t.stream);  // the low pages come to it
  t.rig.touch(t.stream, both);
  const CallCounts before = t.rig.sim().callCounts();
  for (void* block : {both, held}) allocator.free(block);
  CHECK(pagesOf(allocator).revived >= 4);
  void* all = allocator.allocate(34 * kMiB, t.stream);
  CHECK(all == t.held);
  t.rig.touch(t.stream, all);
  CHECK(t.rig.sim().callCounts() == before);
  checkAtRest(t.rig);
}

TEST_CASE("free memory that the range can grow behind is used last", "[engine][pages]") {
  SimRig rig("recycle:off,page_size:2MiB", simOf(kGiB, 1'000'000));
  const Stream s = rig.stream();
  CachingAllocator& allocator = rig.allocator;
  void* inner = allocator.allocate(40 * kMiB, s);
  void* held = allocator.allocate(2 * kMiB, s);
  void* last = allocator.allocate(30 * kMiB, s);
  allocator.free(inner);
  allocator.free(last);
  void* fits_both = allocator.allocate(20 * kMiB, s);
  CHECK(fits_both == inner);
  CHECK(allocator.allocate(44 * kMiB, s) == last);  // 14 MiB are made, behind what is there
  CHECK(reservedOf(allocator) == mib(40 + 2 + 44));
  CHECK(held != nullptr);
  checkAtRest(rig);
}

}  // namespace cistern::test
