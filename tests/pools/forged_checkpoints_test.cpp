// Checkpoints that no pool has said: a pool is set back to one that could be, and is refused any
// other, with nothing changed.
#include <iterator>
#include <random>

#include "allocator/engine/engine.hpp"
#include "tests/pools/pools_support.hpp"

namespace cistern::test {
namespace {

bool areSame(const std::vector<LiveBlock>& a, const std::vector<LiveBlock>& b) { return a == b; }

/// One field of one block is another number; or a block is there twice, or one that is nowhere.
void forge(std::vector<LiveBlock>& blocks, std::mt19937_64& random) {
  constexpr std::uint64_t kOne = 1;
  const std::uint64_t values[] = {
      0,          1,          kGranule,   kGranule - 1,      2 * kMiB,     3 * kMiB,    kOne << 32,
      kOne << 56, kOne << 57, kOne << 63, ~std::uint64_t{0}, 0 - kGranule, 0 - 2 * kMiB};
  LiveBlock& block = blocks[random() % blocks.size()];
  const std::uint64_t value = values[random() % std::size(values)];
  const bool shifts = random() % 2 == 0;
  const auto change = [&](std::uint64_t& field) { field = shifts ? field + value : value; };
  switch (random() % 6) {
    case 0:
      return change(block.address);
    case 1:
      return change(block.bytes);
    case 2:
      return change(block.requested);
    case 3:
      return void(block.stream = Stream(std::uintptr_t(value)));
    case 4:
      return void(blocks.insert(blocks.begin(), block));
    default:
      block.bytes = block.requested = value;
      block.address = 0 - value;
  }
}

}  // namespace

TEST_CASE("a forged checkpoint is refused, or is one that could be", "[pools]") {
  const char* const options = GENERATE("backing:pages", "backing:segments");
  std::size_t refused = 0, set_back = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    std::mt19937_64 random(seed);
    PoolRig rig(options);
    const Stream s = rig.stream(), t = rig.stream();
    MemPool pool(rig.pools);
    std::vector<void*> kept;
    for (const std::size_t bytes : {kKiB, 3 * kMiB, 40 * kMiB + 1, 512 * kKiB})
      kept.push_back(pool.allocate(bytes, random() % 2 == 0 ? s : t));
    PoolCheckpoint checkpoint = rig.pools.getCheckpointState(pool.id());
    for (void* block : kept) {
      if (random() % 2 == 0) rig.free(block);
    }
    for (std::uint64_t changes = 1 + random() % 2; changes > 0; --changes)
      forge(checkpoint.blocks, random);
    const PoolCheckpoint before = rig.pools.getCheckpointState(pool.id());
    try {
      (void)rig.pools.setCheckpointPoolState(checkpoint);
      CHECK(areSame(rig.pools.getCheckpointState(pool.id()).blocks, checkpoint.blocks));
      ++set_back;
    } catch (const PoolError&) {
      CHECK(areSame(rig.pools.getCheckpointState(pool.id()).blocks, before.blocks));
      ++refused;
    }
    rig.allocator.audit();
    for (const LiveBlock& block : rig.pools.getCheckpointState(pool.id()).blocks)
      rig.free(toPointer(block.address));
    rig.allocator.audit();
  }
  CHECK(refused > 100);
  CHECK(set_back > 10);
}

TEST_CASE("a checkpoint whose last block runs over the end of all addresses is refused",
          "[pools]") {
  PoolRig rig;
  MemPool pool(rig.pools);
  void* const block = pool.allocate(kMiB, rig.stream());
  PoolCheckpoint checkpoint = rig.pools.getCheckpointState(pool.id());
  checkpoint.blocks.push_back({Address(0) - kMiB, kMiB, kMiB, {}});  // it ends at 0
  CHECK_THROWS_AS(rig.pools.setCheckpointPoolState(checkpoint), PoolError);
  rig.free(block);
}

}  // namespace cistern::test
