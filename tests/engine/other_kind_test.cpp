// A request that no memory of its own kind, small or large, is left for takes a piece of the
// other's.
#include <algorithm>

#include "tests/engine/engine_support.hpp"

namespace cistern::test {
namespace {

/// Blocks of that size until the next is refused, in the order of their addresses.
std::vector<void*> filled(CachingAllocator& allocator, std::size_t bytes, Stream stream) {
  std::vector<void*> blocks;
  try {
    for (;;) blocks.push_back(allocator.allocate(bytes, stream));
  } catch (const OutOfMemory&) {
  }
  std::ranges::sort(blocks, {}, [](void* block) { return toAddress(block); });
  return blocks;
}

void freeEveryOther(CachingAllocator& allocator, std::vector<void*>& blocks) {
  for (std::size_t i = 0; i < blocks.size(); i += 2)
    allocator.free(std::exchange(blocks[i], nullptr));
}

}  // namespace

TEST_CASE("a small request takes a piece of a large free block before it is refused", "[engine]") {
  for (const std::size_t bytes : {std::size_t{4}, 100 * kKiB, kMiB}) {
    INFO("bytes: " << bytes);
    SimRig rig("limit:64MiB");
    CachingAllocator& allocator = rig.allocator;
    std::vector<void*> large = filled(allocator, 1536 * kKiB, Stream{});
    freeEveryOther(allocator, large);
    const std::int64_t reserved = reservedOf(allocator);
    const std::uint64_t refused = allocator.memoryStats().num_ooms;
    void* const small = allocator.allocate(bytes, Stream{});
    rig.touch(Stream{}, small);
    CHECK(allocator.blockSize(small) >= bytes);
    CHECK(reservedOf(allocator) == reserved);
    CHECK(allocator.memoryStats().num_ooms == refused);
    allocator.audit();
    allocator.free(small);
    for (void* block : large) allocator.free(block);
    rig.sim().synchronizeDevice().orThrow();
    allocator.emptyCache();
    CHECK(reservedOf(allocator) == 0);
    CHECK(nowOf(allocator, Stat::kAllocation) == 0);
    CHECK(nowOf(allocator, Stat::kRequestedBytes) == 0);
  }
}

TEST_CASE("small requests fill the only segment there is", "[engine]") {
  SimRig rig("backing:segments", simOf(64 * kMiB));
  CachingAllocator& allocator = rig.allocator;
  allocator.free(allocator.allocate(64 * kMiB));
  void* const held = allocator.allocate(2 * kMiB);
  for (int i = 0; i < 100; ++i) CHECK_NOTHROW((void)allocator.allocate(4));
  CHECK(reservedOf(allocator) == mib(64));
  allocator.free(held);
}

TEST_CASE("a large request takes a piece of a small free block before it is refused", "[engine]") {
  SimRig rig("limit:32MiB");
  CachingAllocator& allocator = rig.allocator;
  std::vector<void*> small = filled(allocator, 256 * kKiB, Stream{});
  // Most of a segment, or two pages from the middle of the one to the middle of the other.
  const std::size_t first = onPages(allocator) ? 4 : 0;
  for (std::size_t i = first; i < first + 7; ++i) allocator.free(std::exchange(small[i], nullptr));
  void* const large = allocator.allocate(1536 * kKiB);
  rig.touch(Stream{}, large);
  allocator.free(large);
  for (void* block : small) allocator.free(block);
}

TEST_CASE("a piece of the other kind may be another stream's", "[engine]") {
  SimRig rig("limit:64MiB,thread_cache:off");
  CachingAllocator& allocator = rig.allocator;
  const Stream own = rig.stream(), other = rig.stream();
  std::vector<void*> large = filled(allocator, 1536 * kKiB, other);
  freeEveryOther(allocator, large);
  void* const small = allocator.allocate(512, own);
  rig.touch(own, small);
  allocator.free(small);
  for (void* block : large) allocator.free(block);
}

TEST_CASE("without reuse across streams no piece is another stream's", "[engine]") {
  SimRig rig("limit:60MiB,cross_stream_reuse:false");
  std::vector<void*> large = filled(rig.allocator, 1536 * kKiB, rig.stream());
  freeEveryOther(rig.allocator, large);
  CHECK_THROWS_AS(rig.allocator.allocate(512, rig.stream()), OutOfMemory);
  for (void* block : large) rig.allocator.free(block);
}

TEST_CASE("a block that may not be split serves no small request", "[engine]") {
  SimRig rig("backing:segments,limit:64MiB,max_split_size:30MiB,max_non_split_rounding:64MiB");
  CachingAllocator& allocator = rig.allocator;
  void* const whole = allocator.allocate(40 * kMiB);
  void* const rest = allocator.allocate(24 * kMiB);
  allocator.free(whole);
  void* const small = allocator.allocate(512);  // the segment is given back, and one of 2 MiB made
  CHECK(reservedOf(allocator) == mib(26));
  allocator.free(small);
  allocator.free(rest);
}

TEST_CASE("while there is room, small and large blocks share no memory", "[engine]") {
  SimRig rig("limit:64MiB");
  CachingAllocator& allocator = rig.allocator;
  void* const large = allocator.allocate(20 * kMiB);
  void* const held = allocator.allocate(20 * kMiB);
  allocator.free(large);
  void* const small = allocator.allocate(512);
  CHECK(allocator.getBaseAllocation(small).base != allocator.getBaseAllocation(held).base);
  allocator.free(small);
  allocator.free(held);
}

}  // namespace cistern::test
