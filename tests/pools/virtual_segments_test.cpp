// Pools whose segments are one page each: for libraries that register a pool's memory.
#include <algorithm>
#include <vector>

#include "tests/pools/pools_support.hpp"

namespace cistern::test {
namespace {

struct VirtualPool {
  explicit VirtualPool(bool no_split = false)
      : pool(rig.pools, {.allocator = virtualSegments(rig.sim()), .no_split = no_split}) {}
  std::uint64_t calls(Call call) { return countOf(rig.sim(), call); }
  std::vector<SnapshotSegment> segments() {
    std::vector<SnapshotSegment> own = rig.allocator.snapshot().segments;
    std::erase_if(own, [&](const SnapshotSegment& each) { return each.pool != pool.id(); });
    std::ranges::sort(own, {}, &SnapshotSegment::number);
    return own;
  }

  PoolRig rig{"backing:pages"};
  MemPool pool;
};

}  // namespace

TEST_CASE("with virtualSegments and no_split each block is a page of its own", "[pools]") {
  VirtualPool own(true);
  const Stream s = own.rig.stream();
  std::vector<void*> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(own.pool.allocate(3 * kMiB, s));
  CHECK(own.calls(Call::kCreatePage) == 5);
  CHECK(own.calls(Call::kMap) == 5);
  CHECK(own.calls(Call::kMalloc) == 0);
  CHECK(own.segments().size() == 5);
  for (const SnapshotSegment& segment : own.segments()) {
    CHECK(segment.bytes == 4 * kMiB);
    CHECK(std::ranges::count(blocks, toPointer(segment.address)) == 1);
  }
  for (void* block : blocks) own.rig.free(block);
  own.rig.allocator.emptyCache();
  CHECK(takenOf(own.rig.sim()) == 0);
}

TEST_CASE("with one_handle each block is one page, which another process can open", "[pools]") {
  PoolRig rig{"backing:pages"};
  const Stream s = rig.stream();
  MemPool pool(rig.pools, {.one_handle = true});
  std::vector<void*> blocks;
  for (const std::size_t bytes : {std::size_t{1000}, 3 * kMiB, 50 * kMiB, 2 * kMiB})
    blocks.push_back(pool.allocate(bytes, s));
  for (void* block : blocks) {
    const auto exported = rig.allocator.exportBlock(block);
    CHECK(exported->pages.size() == 1);
    CHECK(exported->base == block);
    CHECK(exported->pages.front().bytes == rig.allocator.getBaseAllocation(block).bytes);
    rig.free(block);
  }
  const std::string refusal = refusalOf<PoolError>([&] {
    MemPool both(rig.pools, {.allocator = virtualSegments(rig.sim()), .one_handle = true});
  });
  CHECK(refusal.find("one_handle") != std::string::npos);
  CHECK_THROWS_AS(MemPool(rig.pools, {.location = Location::kHost, .one_handle = true}), PoolError);
}

TEST_CASE("where the device refuses pages, one_handle gives each block a malloc", "[pools]") {
  PoolRig rig{"backing:pages"};
  const Stream s = rig.stream();
  rig.sim().faults().failAll(Call::kCreatePage, ErrorKind::kNotSupported);
  MemPool pool(rig.pools, {.one_handle = true});
  rig.free(rig.allocate(8 * kMiB, s));
  void* const block = pool.allocate(8 * kMiB, s);
  CHECK(rig.allocator.getBaseAllocation(block).base == block);
  rig.free(block);
}

TEST_CASE("where memory comes in segments, one_handle gives each block a malloc", "[pools]") {
  PoolRig rig{"backing:segments"};
  const Stream s = rig.stream();
  MemPool pool(rig.pools, {.one_handle = true});
  const std::uint64_t before = countOf(rig.sim(), Call::kMalloc);
  void* const a = pool.allocate(1000, s);
  void* const b = pool.allocate(1000, s);
  CHECK(countOf(rig.sim(), Call::kMalloc) - before == 2);
  CHECK(rig.allocator.getBaseAllocation(a).base == a);
  CHECK(rig.allocator.getBaseAllocation(b).base == b);
  rig.free(a);
  rig.free(b);
}

TEST_CASE("the pages of virtualSegments never move, however short memory is", "[pools]") {
  VirtualPool own;
  const Stream s = own.rig.stream();
  void* const held = own.pool.allocate(300 * kMiB, s);
  own.rig.free(own.pool.allocate(300 * kMiB, s));
  const std::uint64_t unmapped = own.calls(Call::kUnmap);
  void* const other = own.rig.allocate(600 * kMiB, s);  // what lies free goes back whole
  CHECK(own.calls(Call::kUnmap) - unmapped == 1);
  CHECK(own.segments().size() == 1);
  CHECK_THROWS_AS(own.rig.allocate(300 * kMiB, s), OutOfMemory);
  own.rig.free(other);
  void* const again = own.pool.allocate(600 * kMiB, s);  // the default pool's pages go for it
  own.rig.touch(s, held);
  own.rig.touch(s, again);
  own.rig.free(held);
  own.rig.free(again);
}

TEST_CASE("segments are numbered in the order in which they came", "[pools]") {
  VirtualPool own;
  const Stream s = own.rig.stream();
  std::vector<Address> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(toAddress(own.pool.allocate(20 * kMiB, s)));
  own.rig.free(toPointer(blocks[1]));
  own.pool.emptyCache();
  blocks.erase(blocks.begin() + 1);
  blocks.push_back(toAddress(own.pool.allocate(20 * kMiB, s)));
  std::vector<Address> listed;
  std::uint64_t last = 0;
  for (const SnapshotSegment& segment : own.segments()) {
    CHECK((listed.empty() || segment.number > last));
    last = segment.number;
    listed.push_back(segment.address);
  }
  CHECK(listed == blocks);
  for (const Address block : blocks) own.rig.free(toPointer(block));
}

TEST_CASE("whether another stream's work is complete changes no segments of a source", "[pools]") {
  for (const bool complete : {true, false}) {
    VirtualPool own;
    const Stream s = own.rig.stream(), other = own.rig.stream();
    void* const block = own.pool.allocate(40 * kMiB, s);
    own.rig.touch(s, block);
    own.rig.free(block);
    if (complete) own.rig.finish();
    own.rig.free(own.pool.allocate(40 * kMiB, other));
    CHECK(own.segments().size() == 2);
  }
}

TEST_CASE("a block in virtualSegments is one memory in two processes", "[pools]") {
  PoolRig there("backing:pages");
  VirtualPool own;
  const Stream s = own.rig.stream();
  void* const block = own.pool.allocate(3 * kMiB, s);
  void* const beside = own.pool.allocate(3 * kMiB, s);
  auto exported = own.rig.allocator.exportBlock(beside);
  REQUIRE(exported->pages.size() == 1);
  CHECK(exported->pages[0].bytes == 20 * kMiB);
  CHECK(toAddress(exported->base) + exported->offset == toAddress(beside));
  CHECK(own.rig.allocator.exportBlock(block)->pages[0].descriptor == exported->pages[0].descriptor);
  {
    const auto import = there.allocator.openImport(exported->pages);
    CHECK(import != nullptr);
  }
  own.rig.free(block);
  own.rig.free(beside);
  own.pool.emptyCache();
  CHECK(own.segments().size() == 1);  // others may still reach it
  exported.reset();
  own.pool.emptyCache();
  CHECK(own.segments().empty());
}

}  // namespace cistern::test
