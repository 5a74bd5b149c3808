// A request of a capture while blocks of the pool wait for other streams, however many there are.
#include <vector>

#include "tests/pools/pools_support.hpp"

namespace cistern::test {

TEST_CASE("a capture's request that would be refused ends all frees that wait", "[pools][pages]") {
  PoolRig rig("limit:64M", simOf(8 * kGiB));
  const Stream captured = rig.stream(), own = rig.stream(), user = rig.stream();
  MemPool pool(rig.pools);
  rig.sim().launch(user, {"copy", {}, kLongNs, nullptr}).orThrow();
  std::vector<void*> blocks;
  for (int i = 0; i < 1'000; ++i) {
    blocks.push_back(pool.allocate(40 * kKiB, own));
    rig.allocator.recordStream(blocks.back(), user);
  }
  for (void* block : blocks) rig.free(block);
  Graph graph(rig.pools);
  GraphCapture capture(graph, captured, pool.id(), CaptureMode::kRelaxed);
  rig.sim().advanceHost(2 * kLongNs);
  void* const block = rig.allocate(56 * kMiB, captured);
  rig.touch(captured, block);
  rig.free(block);
  capture.end();
  graph.replay(captured);
  rig.finish();
}

}  // namespace cistern::test
