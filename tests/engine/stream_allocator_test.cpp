// One stream's view of an allocator.
#include "cistern/allocator.hpp"
#include "tests/engine/engine_support.hpp"

namespace cistern::test {

TEST_CASE("a stream's allocator and the plain verbs share their blocks", "[engine][gpu-too]") {
  forEachBackend([](DeviceWork& work) {
    INFO("backend: " << work.device().backend());
    CachingAllocator allocator(work.device(), optionsOf());
    const Streams streams(work.device(), 2);
    const StreamAllocator on(allocator, streams[0]), elsewhere(allocator, streams[1]);
    void* block = on.allocate(4 * kMiB);
    allocator.free(block);
    CHECK(allocator.allocate(4 * kMiB, streams[0]) == block);
    elsewhere.free(block);  // a block goes back to where it came from, whoever frees it
    CHECK(on.allocate(4 * kMiB) == block);
    on.free(block);
    CHECK(on.allocate(0) == nullptr);
    on.free(nullptr);
    CHECK(allocator.memoryStats()[Stat::kAllocation].current == 0);
    CHECK(allocator.memoryStats().num_misuses == 0);
  });
}

TEST_CASE("a block recorded on a stream's allocator waits for that stream", "[engine]") {
  SimRig rig("thread_cache:off");
  const StreamAllocator on(rig.allocator, rig.stream()), user(rig.allocator, rig.stream());
  void* block = on.allocate(4 * kMiB);
  rig.work.delay(user.stream(), kLongNs);
  user.record(block);
  on.free(block);
  CHECK(on.allocate(4 * kMiB) != block);
  CHECK(rig.allocator.memoryStats()[Stat::kActive].current == 2);
  CHECK_THROWS_AS(StreamAllocator(rig.allocator, Stream{0xbad}).allocate(kKiB), InvalidArgument);
}

TEST_CASE("stream allocators are alike where allocator and stream are", "[engine]") {
  SimRig rig, other;
  const StreamAllocator on(rig.allocator, rig.stream());
  const StreamAllocator copy = on;
  CHECK(copy == on);
  CHECK_FALSE(on == StreamAllocator(rig.allocator, rig.stream()));
  CHECK_FALSE(on == StreamAllocator(other.allocator, on.stream()));
  CHECK(&copy.allocator() == &rig.allocator);
}

}  // namespace cistern::test
