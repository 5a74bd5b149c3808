// Streams that join a capture while another thread's miss looks how far they are: to ask a stream
// that is being captured would break the capture.
#include <atomic>
#include <thread>

#include "tests/pools/unwind_support.hpp"

namespace cistern::test {

TEST_CASE("a stream may join a capture while a miss elsewhere looks at its memory", "[pools]") {
  constexpr int kCaptures = kSlowBuild ? 50 : 500;
  PoolRig rig("background_thread:false");
  const Stream origin = rig.stream(), joins = rig.stream(), misses = rig.stream();
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) {
      rig.temporary(3 * kMiB, misses);
      rig.allocator.emptyCache();
    }
  });
  int broken = 0;
  for (int i = 0; i < kCaptures; ++i) {
    rig.free(rig.allocate(3 * kMiB, joins));  // there is something to look at
    Graph graph(rig.pools);
    graph.captureBegin(origin, {}, CaptureMode::kRelaxed);
    rig.join(joins, origin);
    rig.temporary(kMiB, joins);
    rig.join(origin, joins);
    try {
      graph.captureEnd();
    } catch (const DeviceFailure&) {
      ++broken;
    }
  }
  done = true;
  other.join();
  CHECK(broken == 0);
}

TEST_CASE("while a capture is under way no stream is asked, and idle ones' memory is found",
          "[pools]") {
  PoolRig rig("limit:256M,background_thread:false");
  const Stream origin = rig.stream(), s = rig.stream(), t = rig.stream();
  void* held = rig.written(150 * kMiB, s);
  rig.finish();
  {
    Graph graph(rig.pools);
    GraphCapture capture(graph, origin);
    rig.temporary(kMiB, origin);
    const std::uint64_t asked = countOf(rig.sim(), Call::kQueryStream);
    rig.free(held);
    rig.temporary(150 * kMiB, t);
    rig.allocator.emptyCache();
    CHECK(countOf(rig.sim(), Call::kQueryStream) == asked);
    capture.end();
    graph.replay(origin);
  }
  if (!onPages(rig.allocator)) return;
  const std::uint64_t asked = countOf(rig.sim(), Call::kQueryStream);
  rig.temporary(100 * kMiB, s);
  rig.temporary(150 * kMiB, t);
  CHECK(countOf(rig.sim(), Call::kQueryStream) > asked);
}

}  // namespace cistern::test
