// Blocks that are used on other streams than their own, and what waiting for those costs.
#include "tests/engine/engine_support.hpp"

namespace cistern::test {

TEST_CASE("a block in use elsewhere is not reused before that work is complete",
          "[engine][gpu-too]") {
  forEachBackend([](DeviceWork& work) {
    INFO("backend: " << work.device().backend());
    CachingAllocator allocator(work.device(), optionsOf("thread_cache:off"));
    const Streams streams(allocator, 2);
    void* block = allocator.allocate(4 * kMiB, streams[0]);
    allocator.recordStream(block, streams[1]);
    work.delay(streams[1], kLongNs);
    work.fill(streams[1], toAddress(block), 4 * kMiB, 7);
    work.verify(streams[1], toAddress(block), 4 * kMiB, 7);
    allocator.free(block);
    CHECK(nowOf(allocator, Stat::kActive) == 1);
    CHECK(nowOf(allocator, Stat::kAllocation) == 0);
    void* other = allocator.allocate(4 * kMiB, streams[0]);
    CHECK(other != block);
    work.fill(streams[0], toAddress(other), 4 * kMiB, 9);
    work.device().synchronizeStream(streams[1]).orThrow();
    hitUntilPoll(allocator, streams[0]);
    CHECK(allocator.allocate(4 * kMiB, streams[0]) == block);
    CHECK(work.mismatches() == 0);
    allocator.audit();
  });
}

TEST_CASE("a block that the default stream has used serves again", "[engine][gpu-too]") {
  forEachBackend([](DeviceWork& work) {
    INFO("backend: " << work.device().backend());
    CachingAllocator allocator(work.device(), optionsOf("thread_cache:off"));
    const Streams streams(allocator, 1);
    void* block = allocator.allocate(4 * kMiB, streams[0]);
    allocator.recordStream(block, Stream{});
    work.fill(Stream{}, toAddress(block), 4 * kMiB, 7);
    allocator.free(block);
    work.device().synchronizeDevice().orThrow();
    hitUntilPoll(allocator, streams[0]);
    CHECK(allocator.allocate(4 * kMiB, streams[0]) == block);
    CHECK(work.mismatches() == 0);
    allocator.audit();
  });
}

TEST_CASE("recording a block's own stream changes nothing", "[engine][gpu-too]") {
  forEachBackend([](DeviceWork& work) {
    CachingAllocator allocator(work.device(), optionsOf());
    const Streams streams(allocator, 1);
    void* block = allocator.allocate(kMiB, streams[0]);
    const std::uint64_t events = countOf(work.device(), Call::kRecordEvent);
    allocator.recordStream(block, streams[0]);
    allocator.free(block);
    CHECK(allocator.allocate(kMiB, streams[0]) == block);
    CHECK(countOf(work.device(), Call::kRecordEvent) == events);
  });
}

TEST_CASE("a block waits for every stream that it was recorded on", "[engine]") {
  SimRig rig("thread_cache:off");
  const Stream own = rig.stream();
  std::vector<Stream> users;
  void* block = rig.allocator.allocate(kMiB, own);
  for (std::uint64_t i = 0; i < 4; ++i) {
    users.push_back(rig.stream());
    rig.allocator.recordStream(block, users.back());
    rig.allocator.recordStream(block, users.back());  // twice is once
    rig.work.delay(users.back(), (i + 1) * kLongNs);
    rig.read(users.back(), block);
  }
  rig.allocator.free(block);
  CHECK(countOf(rig.sim(), Call::kRecordEvent) == 4);
  for (Stream user : users) {
    hitUntilPoll(rig.allocator, own);
    void* other = rig.allocator.allocate(kMiB, own);
    CHECK(other != block);
    rig.allocator.free(other);
    rig.sim().synchronizeStream(user).orThrow();
  }
  hitUntilPoll(rig.allocator, own);
  void* again = rig.allocator.allocate(kMiB, own);
  CHECK(again == block);
  rig.touch(own, again);
}

TEST_CASE("work that does not end is asked about ever less often", "[engine]") {
  SimRig rig("thread_cache:off");
  const Stream own = rig.stream(), user = rig.stream();
  const auto waitFor = [&](std::uint64_t ns) {
    void* block = rig.allocator.allocate(kMiB, own);
    rig.allocator.recordStream(block, user);
    rig.work.delay(user, ns);
    rig.allocator.free(block);
  };
  const auto hitsUntilFreed = [&] {
    int hits = 0;
    for (; nowOf(rig.allocator, Stat::kActive) != 0 && hits < 1'000; ++hits)
      rig.allocator.free(rig.allocator.allocate(kKiB, own));
    return hits;
  };
  rig.allocator.free(rig.allocator.allocate(kKiB, own));
  waitFor(1'000 * kLongNs);
  const std::uint64_t before = countOf(rig.sim(), Call::kQueryEvent);
  for (int i = 0; i < 10'000; ++i) rig.allocator.free(rig.allocator.allocate(kKiB, own));
  const std::uint64_t asked = countOf(rig.sim(), Call::kQueryEvent) - before;
  CHECK(asked >= 10'000 / (64 * PendingFrees::kHitsPerPoll));
  CHECK(asked <= 100);
  rig.sim().synchronizeDevice().orThrow();
  CHECK(hitsUntilFreed() <= 65 * int(PendingFrees::kHitsPerPoll));
  // What comes after is asked about as often as ever.
  waitFor(kLongNs);
  rig.sim().synchronizeDevice().orThrow();
  CHECK(hitsUntilFreed() <= 2 * int(PendingFrees::kHitsPerPoll));
}

TEST_CASE("events are used again", "[engine]") {
  SimRig rig("thread_cache:off");
  const Stream own = rig.stream(), user = rig.stream();
  for (int round = 0; round < 50; ++round) {
    void* block = rig.allocator.allocate(kKiB, own);
    rig.allocator.recordStream(block, user);
    rig.touch(user, block);
    rig.allocator.free(block);
    rig.sim().synchronizeStream(user).orThrow();
    hitUntilPoll(rig.allocator, own);
  }
  CHECK(countOf(rig.sim(), Call::kCreateEvent) <= 2);
  CHECK(reservedOf(rig.allocator) == mib(2));
}

TEST_CASE("what never ends keeps back only what hangs on it", "[engine]") {
  SimRig rig;
  const Stream own = rig.stream(), stuck = rig.stream(), user = rig.stream();
  void* lost = rig.allocator.allocate(kMiB, own);
  rig.allocator.recordStream(lost, stuck);
  rig.neverEnd(stuck);
  rig.allocator.free(lost);
  for (int i = 0; i < 20; ++i) {
    void* block = rig.allocator.allocate(512 * kKiB, own);
    CHECK(block != lost);
    rig.allocator.recordStream(block, user);
    rig.touch(user, block);
    rig.allocator.free(block);
    rig.sim().synchronizeStream(user).orThrow();
  }
  CHECK(reservedOf(rig.allocator) == mib(2));
  CHECK(nowOf(rig.allocator, Stat::kActiveBytes) >= mib(1));
}

TEST_CASE("use on a destroyed stream is refused", "[engine]") {
  SimRig rig;
  void* block = rig.allocator.allocate(kMiB);
  const Stream gone = rig.stream();
  rig.sim().destroyStream(gone).orThrow();
  CHECK_THROWS_AS(rig.allocator.recordStream(block, gone), InvalidArgument);
  CHECK_THROWS_AS(rig.allocator.allocate(kMiB, gone), InvalidArgument);
  CHECK_THROWS_WITH(rig.allocator.allocate(kMiB, Stream{0xdead}),
                    Catch::Matchers::ContainsSubstring("0xdead"));
  rig.allocator.free(block);
  CHECK(rig.allocator.allocate(kMiB) == block);
}

TEST_CASE("a block whose user was destroyed before the free comes back under pressure",
          "[engine]") {
  SimRig rig("", simOf(64 * kMiB, 10'000));
  const Stream own = rig.stream(), user = rig.stream();
  void* block = rig.allocator.allocate(40 * kMiB, own);
  rig.allocator.recordStream(block, user);
  rig.touch(user, block);
  rig.sim().destroyStream(user).orThrow();
  rig.allocator.free(block);
  CHECK(nowOf(rig.allocator, Stat::kActive) == 1);
  void* again = rig.allocator.allocate(40 * kMiB, own);
  CHECK(again == block);
  rig.touch(own, again);
}

TEST_CASE("memory of a destroyed stream is given back or lent under pressure", "[engine]") {
  SimRig rig("", simOf(64 * kMiB, 10'000));
  const Stream gone = rig.stream(), other = rig.stream();
  void* whole = rig.allocator.allocate(20 * kMiB, gone);
  void* part = rig.allocator.allocate(40 * kMiB, gone);
  void* kept = rig.allocator.allocate(kMiB, gone);
  for (void* block : {whole, part, kept}) rig.touch(gone, block);
  rig.allocator.free(part);
  part = rig.allocator.allocate(2 * kMiB, gone);  // the other 38 are split off
  rig.sim().destroyStream(gone).orThrow();
  rig.allocator.free(whole);
  void* first = rig.allocator.allocate(20 * kMiB, other);
  rig.touch(other, first);
  void* second = rig.allocator.allocate(36 * kMiB, other);  // beside `part`, when all is complete
  rig.touch(other, second);
  if (!onPages(rig.allocator)) CHECK(rig.allocator.getBaseAllocation(second).base == part);
  for (void* block : {part, kept, first, second}) rig.allocator.free(block);
  rig.sim().synchronizeDevice().orThrow();
  rig.allocator.emptyCache();
  CHECK(reservedOf(rig.allocator) == 0);
}

}  // namespace cistern::test
