// The steps of a miss, in the order in which they are tried: the one of programs, and that of
// captures.

#include "allocator/engine/capture/live_capture.hpp"
#include "allocator/engine/engine.hpp"
#include "allocator/engine/paths/slow_path.hpp"
#include "tests/engine/fallbacks_support.hpp"

namespace cistern::test {

TEST_CASE("a miss tries what costs the program nothing first, and waits last", "[engine][part]") {
  StepsRig rig("backing:segments,garbage_collection_threshold:0.2", 64 * kMiB);
  const Stream own = rig.stream(), user = rig.stream();
  CHECK(rig.serve(20 * kMiB, own) == Steps{"tidy", "grows"});
  rig.freePending(*rig.block, user);
  CHECK(rig.serve(22 * kMiB, own) == Steps{"events", "tidy", "grows"});
  rig.free(*rig.block);
  CHECK(rig.serve(50 * kMiB, own) == Steps{"events", "tidy", "gives back", "grows",
                                           "waits for a stream", "pools", "waits for the device",
                                           "callbacks", "out of memory"});
}

TEST_CASE("a miss of pages waits for the device when nothing less is left", "[engine][part]") {
  StepsRig rig("backing:pages,background_thread:false", 64 * kMiB);
  const Stream own = rig.stream(), user = rig.stream();
  CHECK(rig.serve(20 * kMiB, own) == Steps{"tidy", "grows"});
  rig.freePending(*rig.block, user);
  const Steps steps = rig.serve(60 * kMiB, own);
  CHECK(steps == Steps{"events", "tidy", "grows", "waits for a stream", "pools",
                       "waits for the device", "callbacks", "out of memory"});
}

TEST_CASE("what threads keep is back in the heaps before the first step", "[engine][part]") {
  StepsRig rig("backing:segments", kGiB);
  const Stream own = rig.stream();
  for (int i = 0; i < 2; ++i) (void)rig.serve(kMiB, own);  // they fill a segment
  Block* const kept = rig.block;
  Heap& heap = *segmentOf(*kept).heap.load();
  ThreadCache* const cache = rig.engine.caches.open(heap);
  REQUIRE(cache);
  {
    const MutexLock lock(heap.mutex());
    cache->blocks().own(*kept);
    REQUIRE(cache->accept(*kept, WhoFreed(nullptr, 0)));
  }
  const Address address = deviceAddress(*kept);
  CHECK(rig.serve(kMiB, own).empty());
  CHECK(deviceAddress(*rig.block) == address);
}

TEST_CASE("the first step that serves ends a miss", "[engine][part]") {
  StepsRig rig("backing:segments", 64 * kMiB);
  const Stream own = rig.stream();
  (void)rig.serve(40 * kMiB, own);
  Block* const held = rig.block;
  rig.reclaim = [&] { return rig.free(*held), true; };
  CHECK(rig.serve(30 * kMiB, own) ==
        Steps{"tidy", "grows", "pools", "waits for the device", "callbacks"});
  rig.reclaim = nullptr;
  rig.free(*rig.block);
}

TEST_CASE("a miss of a capture neither gives back nor waits", "[engine][part]") {
  for (const char* conf : {"backing:segments,garbage_collection_threshold:0.2",
                           "backing:pages,background_thread:false"}) {
    StepsRig rig(conf, 64 * kMiB);
    const Stream own = rig.stream(), user = rig.stream(), captured = rig.stream();
    (void)rig.serve(20 * kMiB, own);
    rig.freePending(*rig.block, user);
    (void)rig.serve(22 * kMiB, own);
    rig.free(*rig.block);

    Engine& engine = rig.engine;
    Pool& pool = engine.pools.open({1, 0}, {});
    const auto capture = std::make_shared<LiveCapture>(engine, pool, captured);
    capture->prepare(captured);
    rig.sim.beginCapture(captured, CaptureMode::kRelaxed).orThrow();
    capture->begin(captured, rig.sim.captureInfo(captured).orThrow().id);
    Request asked = engine.rules.request(50 * kMiB, captured, &pool);
    asked.capture = capture.get();
    asked.part = capture->partOf(captured);
    REQUIRE(asked.part != 0);
    rig.log.clear();
    CHECK_THROWS_AS(slow_path::fallBack(engine, slow_path::heapFor(engine, asked), asked),
                    OutOfMemory);
    CHECK(rig.log == Steps{"events", "tidy", "grows", "callbacks"});
    Footprint footprint = capture->end();
    rig.sim.destroyGraph(rig.sim.endCapture(captured).orThrow()).orThrow();
    engine.letGo(footprint);
    cistern::audit(engine);
  }
}

}  // namespace cistern::test
