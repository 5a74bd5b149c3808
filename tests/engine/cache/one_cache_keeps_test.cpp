// What a cache keeps of larger blocks, and how it is made to give something up.
#include "tests/engine/cache/one_cache_support.hpp"

namespace cistern::test {

TEST_CASE("of blocks beyond a megabyte the one that was freed last is kept", "[engine][part]") {
  OneCache rig;
  Block& first = rig.held(2 * kMiB);
  Block& second = rig.held(3 * kMiB);
  CHECK(rig.accept(first));
  CHECK(rig.cache.blocks().has(2 * kMiB >> kGranuleShift));
  CHECK(rig.accept(second));
  CHECK(rig.cache.blocks().bytes() == 3 * kMiB);
  CHECK(rig.busyBytes() == 3 * kMiB);
  CHECK(rig.takeAny(2 * kMiB) == nullptr);
  CHECK(rig.takeAny(3 * kMiB) == &second);
  CHECK(rig.giveAny(second));
  {
    const MutexLock lock(rig.heap.mutex());
    rig.cache.blocks().flushLast();
  }
  CHECK_FALSE(rig.cache.blocks().has(3 * kMiB >> kGranuleShift));
  CHECK(rig.busyBytes() == 0);
}

TEST_CASE("a cache keeps nothing while its heap's stream is forgotten", "[engine][part]") {
  OneCache rig;
  Block& block = rig.held(kKiB);
  Block& sent = rig.held(kKiB);
  {
    const MutexLock lock(rig.heap.mutex());
    rig.heap.setForgotten(true);
    rig.cache.flush();
  }
  CHECK_FALSE(rig.accept(block));
  CHECK(rig.freeRemotely(sent) == RemoteFrees::Answer::kTaken);
  {
    const MutexLock lock(rig.heap.mutex());
    CHECK(rig.cache.takeLocked(kKiB) == nullptr);  // what came went on to the heap
    rig.heap.setForgotten(false);
  }
  CHECK(rig.busyBytes() == kKiB);
  CHECK(rig.accept(block));
}

TEST_CASE("what a kind of sizes keeps is given up some at a time, the largest first",
          "[engine][part]") {
  OneCache rig;
  for (const std::uint64_t bytes : {kKiB, kKiB, 4 * kKiB, 2 * kMiB}) {
    CHECK(rig.accept(rig.held(bytes)));
  }
  const MutexLock lock(rig.heap.mutex());
  CHECK(rig.cache.blocks().flushSome(SizeKind::kSmall));
  CHECK(rig.cache.blocks().bytes() == 2 * kMiB + 2 * kKiB);
  CHECK(rig.cache.blocks().flushSome(SizeKind::kSmall));
  CHECK_FALSE(rig.cache.blocks().flushSome(SizeKind::kSmall));
  CHECK(rig.cache.blocks().bytes() == 2 * kMiB);
  CHECK(rig.cache.blocks().flushSome(SizeKind::kLarge));
  CHECK_FALSE(rig.cache.blocks().flushSome(SizeKind::kLarge));
  CHECK(rig.heap.busyBytes() == 0);
  rig.cache.blocks().audit();
}

TEST_CASE("a flushed cache asks before it keeps something again", "[engine][part]") {
  OneCache rig;
  Block& block = rig.held(kKiB);
  Block& other = rig.held(2 * kKiB);
  CHECK(rig.accept(block));
  {
    const MutexLock lock(rig.heap.mutex());
    rig.cache.flush();
    rig.cache.blocks().audit();
  }
  CHECK(rig.busyBytes() == 2 * kKiB);
  CHECK_FALSE(rig.give(other));
  CHECK(rig.accept(other));
}

TEST_CASE("a block is found by its address while its record stands for it", "[engine][part]") {
  OneCache rig;
  Block& block = rig.held(kKiB);
  const Address address = deviceAddress(block);
  CHECK(rig.cache.recents().find(address) == nullptr);
  rig.cache.recents().remember(address, block);
  CHECK(rig.cache.recents().find(address) == &block);
  CHECK(rig.cache.recents().find(address + kGranule) == nullptr);
  rig.free(block);
  {
    const MutexLock lock(rig.heap.mutex());
    rig.cache.flush();
  }
  CHECK(rig.cache.recents().find(address) == nullptr);
}

static std::vector<ThreadCache*> takeListed(CacheGround& ground) {
  std::vector<ThreadCache*> listed;
  ThreadCache* next = ground.filled.exchange(nullptr);
  while (next != nullptr) {
    listed.push_back(next);
    next = next->unlist();
  }
  return listed;
}

TEST_CASE("a cache is listed when something comes into it, once until it is looked at",
          "[engine][part]") {
  OneCache rig;
  CHECK(takeListed(rig.ground).empty());
  Block& block = rig.held(kKiB);
  Block& sent = rig.held(kKiB);
  CHECK(rig.accept(block));
  CHECK(rig.accept(rig.held(kKiB)));
  CHECK(takeListed(rig.ground) == std::vector{&rig.cache});
  CHECK(takeListed(rig.ground).empty());
  CHECK(rig.freeRemotely(sent) == RemoteFrees::Answer::kTaken);
  CHECK(takeListed(rig.ground) == std::vector{&rig.cache});
}

}  // namespace cistern::test
