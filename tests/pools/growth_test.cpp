// What n pools, blocks or graphs cost grows with n, not with its square: steps are counted.
#include <memory>
#include <vector>

#include "allocator/base/steps.hpp"
#include "tests/pools/pools_support.hpp"

namespace cistern::test {
namespace {

/// How many steps searches take in what `run` does.
template <class Run>
std::uint64_t stepsOf(Run run) {
  const std::uint64_t before = steps_searched;
  run();
  return steps_searched - before;
}

/// Steps of setting back half of n blocks.
std::uint64_t stepsToSetBack(std::size_t n, std::size_t bytes) {
  PoolRig rig("", simOf(n * bytes + 64 * kMiB));
  MemPool pool(rig.pools);
  const Stream s = rig.stream();
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < n; ++i) blocks.push_back(pool.allocate(bytes, s));
  const PoolCheckpoint checkpoint = rig.pools.getCheckpointState(pool.id());
  for (std::size_t i = 0; i < n; i += 2) rig.free(blocks[i]);
  const std::uint64_t steps = stepsOf([&] { (void)rig.pools.setCheckpointPoolState(checkpoint); });
  for (void* block : blocks) rig.free(block);
  return steps;
}

/// The same where the pages of that half serve one large block meanwhile.
std::uint64_t stepsToBringBack(std::size_t n) {
  PoolRig rig("page_size:2M", simOf(2 * n * kMiB));
  MemPool pool(rig.pools);
  const Stream s = rig.stream();
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < n; ++i) blocks.push_back(pool.allocate(2 * kMiB, s));
  const PoolCheckpoint checkpoint = rig.pools.getCheckpointState(pool.id());
  for (std::size_t i = 0; i < n; i += 2) rig.free(blocks[i]);
  (void)pool.allocate(n * kMiB, s);
  const std::uint64_t steps =
      stepsOf([&] { CHECK(rig.pools.setCheckpointPoolState(checkpoint).made.size() == n / 2); });
  rig.allocator.audit();
  for (void* block : blocks) rig.free(block);
  return steps;
}

}  // namespace

TEST_CASE("setting back twice as many blocks takes twice as many steps", "[pools]") {
  const std::size_t bytes = GENERATE(std::size_t{2000}, std::size_t{2} * kMiB);
  const std::uint64_t some = stepsToSetBack(200, bytes), twice = stepsToSetBack(400, bytes);
  CHECK(some >= 100);
  CHECK(twice <= 3 * some);
}

TEST_CASE("bringing twice as many pages back takes twice as many steps", "[pools][pages]") {
  const std::uint64_t some = stepsToBringBack(100), twice = stepsToBringBack(200);
  CHECK(some >= 50);
  CHECK(twice <= 3 * some);
}

}  // namespace cistern::test
