// Block records: what was prepared for needs no more host memory, and no record is handed out
// twice.
#include "allocator/layout/block_slabs.hpp"

#include <cstdint>
#include <set>
#include <vector>

#include "tests/support/catch.hpp"

namespace cistern::test {
namespace {

std::vector<Block*> takeSome(BlockSlabs& pool, std::size_t count) {
  std::vector<Block*> taken;
  for (std::size_t i = 0; i < count; ++i) taken.push_back(pool.take());
  return taken;
}

}  // namespace

TEST_CASE("what a pool is prepared for takes no more host memory", "[layout]") {
  for (const std::size_t count : {1u, 15u, 17u, 1'000u, 100'000u}) {  // the last: several slabs
    INFO(count);
    BlockSlabs pool;
    std::vector<Block*> taken = takeSome(pool, 10);
    pool.prepare(count, taken.size());
    const std::size_t bytes = pool.hostBytes();
    CHECK(bytes >= (taken.size() + count) * sizeof(Block));
    for (Block* block : takeSome(pool, count)) taken.push_back(block);
    CHECK(pool.hostBytes() == bytes);
    CHECK(std::set<Block*>(taken.begin(), taken.end()).size() == taken.size());
    CHECK(pool.countInUse() == taken.size());
    pool.prepare(1, taken.size());
    CHECK(pool.hostBytes() >= (taken.size() + 1) * sizeof(Block));
    for (Block* block : taken) pool.give(block);
    CHECK(pool.countInUse() == 0);
  }
}

TEST_CASE("preparing for what is there already changes nothing", "[layout]") {
  BlockSlabs pool;
  pool.prepare(100, 0);
  const std::size_t bytes = pool.hostBytes();
  pool.prepare(100, 0);
  const std::vector<Block*> taken = takeSome(pool, 60);
  pool.prepare(40, taken.size());
  CHECK(pool.hostBytes() == bytes);
}

}  // namespace cistern::test
