// One thread's cache: which blocks it keeps, in which state, and what becomes of them.
#include "tests/engine/cache/one_cache_support.hpp"

namespace cistern::test {

using ownership::Where;
using RemoteAnswer = RemoteFrees::Answer;

TEST_CASE("a block is held, cached, and held again, and counts as free between", "[engine][part]") {
  OneCache rig;
  Block& block = rig.held(kKiB);
  CHECK(OneCache::whereIs(block) == Where::kHeld);
  CHECK_FALSE(rig.give(block));  // how much it may keep is to be asked first
  CHECK(rig.accept(block));
  CHECK(OneCache::whereIs(block) == Where::kCached);
  CHECK(rig.current(Stat::kAllocation) == 0);
  CHECK(rig.take(2 * kKiB) == nullptr);
  CHECK(rig.take(900) == &block);
  CHECK(OneCache::whereIs(block) == Where::kHeld);
  CHECK(ownership::requested(block) == 900);
  CHECK(rig.current(Stat::kRequestedBytes) == 900);
  CHECK(rig.give(block));
  CHECK(rig.cache.blocks().bytes() == kKiB);
  CHECK(rig.current(Stat::kRequestedBytes) == 0);
}

TEST_CASE("a block that the program does not have is not the cache's to take", "[engine][part]") {
  OneCache rig;
  Block& block = rig.held(kKiB);
  Block& heaps = rig.allocate(rig.heap, kKiB);
  CHECK(rig.accept(block));
  CHECK_FALSE(rig.give(block));
  CHECK_FALSE(rig.giveAny(block));
  CHECK_FALSE(rig.give(heaps));
  CHECK(rig.cache.blocks().bytes() == kKiB);
  CHECK(rig.freeRemotely(block) == RemoteAnswer::kNotHeld);
  Parts::release(heaps);
}

TEST_CASE("of each size the block that came last goes first", "[engine][part]") {
  OneCache rig;
  Block* blocks[6];
  for (int i = 0; i < 6; ++i) blocks[i] = &rig.held(i % 2 ? kKiB : 3 * kKiB);
  for (Block* block : blocks) CHECK(rig.accept(*block));
  for (int i = 5; i >= 0; --i) CHECK(rig.take(i % 2 ? kKiB : 3 * kKiB) == blocks[i]);
  CHECK_FALSE(rig.cache.keepsAny());
}

TEST_CASE("a cache never keeps more than it may, and the heap has the rest", "[engine][part]") {
  constexpr std::uint64_t kMost = 16 * kKiB;
  OneCache rig(1 << 30, kMost);
  std::vector<Block*> blocks;
  for (std::uint64_t i = 0; i < 60; ++i) blocks.push_back(&rig.held((1 + i % 5) * kKiB));
  for (Block* block : blocks) {
    rig.free(*block);
    CHECK(rig.cache.blocks().bytes() <= kMost);
  }
  CHECK(rig.cache.blocks().bytes() >= kMost / 2);
  CHECK(rig.busyBytes() == rig.cache.blocks().bytes());
  Block& large = rig.held(kMost + kKiB);
  CHECK_FALSE(rig.accept(large));
  rig.free(large);
  Parts::audit(rig.heap);
}

TEST_CASE("without a budget nothing is kept, and what was granted comes back at the end",
          "[engine][part]") {
  OneCache poor(32 * kKiB, 64 * kKiB);  // all or nothing
  Block& block = poor.held(kKiB);
  CHECK_FALSE(poor.accept(block));
  CHECK(poor.ground.left == std::int64_t(32 * kKiB));
  poor.free(block);

  OneCache rig(100 * kKiB, 64 * kKiB);
  CHECK(rig.accept(rig.held(kKiB)));
  CHECK(rig.ground.left == std::int64_t(36 * kKiB));
  const MutexLock lock(rig.heap.mutex());
  rig.cache.close();
  CHECK(rig.ground.left == std::int64_t(100 * kKiB));
}

TEST_CASE("while the biased lock is revoked its owner gets nothing from the cache, nor into it",
          "[engine][part]") {
  OneCache rig;
  Block& block = rig.held(kKiB);
  Block& other = rig.held(kKiB);
  CHECK(rig.accept(block));
  rig.cache.biasedLock().revoke();
  CHECK(rig.take(kKiB) == nullptr);
  CHECK(rig.takeAny(kKiB) == nullptr);
  CHECK_FALSE(rig.give(other));
  CHECK_FALSE(rig.giveAny(other));
  rig.cache.biasedLock().restore();
  CHECK(rig.give(other));
  CHECK(rig.take(kKiB) == &other);
  CHECK(rig.takeAny(kKiB) == &block);
}

TEST_CASE("what another thread has freed is taken in under the heap's lock", "[engine][part]") {
  OneCache rig;
  Block& block = rig.held(kKiB);
  CHECK(rig.freeRemotely(block) == RemoteAnswer::kTaken);
  CHECK(OneCache::whereIs(block) == Where::kRemoteFreed);
  CHECK(rig.freeRemotely(block) == RemoteAnswer::kNotHeld);
  CHECK(rig.cache.keepsAny());
  CHECK(rig.cache.mayHave(kKiB));
  CHECK(rig.take(kKiB) == nullptr);
  const MutexLock lock(rig.heap.mutex());
  CHECK(rig.cache.takeLocked(kKiB) == &block);
  CHECK(OneCache::whereIs(block) == Where::kHeld);
  CHECK_FALSE(rig.cache.mayHave(kKiB));
  rig.cache.blocks().audit();
}

TEST_CASE("a cache that closes leaves the heap all that it had, and all that is on its way",
          "[engine][part]") {
  OneCache rig;
  Block& kept = rig.held(kKiB);
  Block& sent = rig.held(kKiB);
  Block& late = rig.held(kKiB);
  CHECK(rig.accept(kept));
  CHECK(rig.freeRemotely(sent) == RemoteAnswer::kTaken);
  {
    const MutexLock lock(rig.heap.mutex());
    rig.cache.close();
    rig.cache.blocks().audit();
  }
  CHECK_FALSE(rig.cache.isOpen());
  CHECK(rig.busyBytes() == kKiB);
  CHECK(rig.freeRemotely(late) == RemoteAnswer::kNoRoom);
  CHECK(OneCache::whereIs(late) == Where::kHeld);
}

}  // namespace cistern::test
