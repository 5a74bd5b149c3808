// A pool that was used eagerly, and then by a graph.
#include "tests/pools/pools_support.hpp"

namespace cistern::test {

// A heap's own free memory is taken in its stream's order; a replay on another stream does not
// follow what that stream had queued eagerly before the capture.
TEST_CASE("a replay follows eager work that still used the memory when it was captured",
          "[pools]") {
  PoolRig rig("background_thread:false", simOf(kGiB, 50'000));
  const Stream s = rig.stream(), side = rig.stream();
  MemPool pool(rig.pools);
  {
    const MemPoolScope scope(pool);
    rig.temporary(9 * kMiB, side);  // queued, and freed in side's order
  }
  Graph graph(rig.pools);
  GraphCapture capture(graph, s, pool.id());
  rig.join(side, s);
  rig.temporary(9 * kMiB, side);  // the same memory
  rig.join(s, side);
  capture.end();
  graph.replay(s);
  CHECK(rig.sim().races().empty());
}

}  // namespace cistern::test
