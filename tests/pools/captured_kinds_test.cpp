// Small and large memory in a capture: the last resort is a piece of the other kind's.
#include "tests/pools/pools_support.hpp"

namespace cistern::test {

TEST_CASE("a small request of a capture takes a piece of a large free block", "[pools]") {
  PoolRig rig("limit:60MiB");
  const Stream s = rig.stream();
  MemPool pool(rig.pools);
  std::vector<void*> large;
  for (int i = 0; i < 38; ++i) large.push_back(pool.allocate(1536 * kKiB, s));
  void* const rest = pool.allocate(1536 * kKiB, s);
  for (std::size_t i = 1; i < large.size(); i += 2) rig.free(std::exchange(large[i], nullptr));
  Graph graph(rig.pools);
  GraphCapture capture(graph, s, pool.id(), CaptureMode::kRelaxed);
  void* const small = rig.written(512, s);
  CHECK(reservedOf(rig.allocator) == mib(60));
  rig.free(small);
  capture.end();
  graph.replay(s);
  rig.finish();
  for (void* block : large) rig.free(block);
  rig.free(rest);
}

}  // namespace cistern::test
