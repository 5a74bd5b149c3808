// All caches of an allocator, and whose they are.
#include "allocator/engine/cache/cache_table.hpp"

#include "allocator/engine/cache/thread_cache.hpp"
#include "allocator/engine/paths/fast_path.hpp"
#include "tests/engine/cache/thread_cache_support.hpp"
#include "tests/engine/parts_support.hpp"

namespace cistern::test {
namespace {

struct TableOfCaches : Parts {
  ThreadCache* openBy(IdleThread& thread, Heap& heap) {
    ThreadCache* cache = nullptr;
    thread.run([&] { cache = table.open(heap); });
    return cache;
  }

  std::atomic<std::uint64_t> tick{1};
  CacheTable table{{64 * kKiB, kMiB, 16 * kMiB}, tick, totals};
};

}  // namespace

TEST_CASE("a thread has one cache for each stream, and finds them again", "[engine][part]") {
  TableOfCaches rig;
  Heap& first = rig.heapOf(rig.stream());
  Heap& second = rig.heapOf(rig.stream());
  CHECK(rig.table.mine(first.stream()) == nullptr);
  ThreadCache* const one = rig.table.open(first);
  ThreadCache* const two = rig.table.open(second);
  REQUIRE((one != nullptr && two != nullptr && one != two));
  CHECK(rig.table.open(first) == one);
  CHECK(&CacheTable::last() == one);
  CHECK(rig.table.mine(second.stream()) == two);
  CHECK(&CacheTable::last() == two);
  CHECK(&one->heap() == &first);
  CHECK(rig.table.owner(one->holder()) == one);
  CHECK(rig.table.owner(two->holder()) == two);
  CHECK(rig.table.owner(ownership::holderOf(1000, ownership::Where::kHeld)) == nullptr);
}

TEST_CASE("threads on one stream have a cache each, and the next thread has one that was left",
          "[engine][part][threads]") {
  TableOfCaches rig;
  Heap& heap = rig.heapOf(rig.stream());
  ThreadCache* const own = rig.table.open(heap);
  ThreadCache* others = nullptr;
  {
    IdleThread thread;
    others = rig.openBy(thread, heap);
    CHECK(others != own);
    CHECK(rig.openBy(thread, heap) == others);
  }
  IdleThread next;
  CHECK(rig.openBy(next, heap) == others);
  const std::size_t bytes = rig.table.hostBytes();
  IdleThread another;
  ThreadCache* const third = rig.openBy(another, heap);
  CHECK((third != own && third != others));
  CHECK(rig.table.hostBytes() > bytes);
}

TEST_CASE("a cache that its thread has left is not its own any more", "[engine][part]") {
  TableOfCaches rig;
  Heap& heap = rig.heapOf(rig.stream());
  ThreadCache* cache = nullptr;
  {
    IdleThread thread;
    cache = rig.openBy(thread, heap);
    CHECK((cache->isOpen() && !cache->isMine()));
  }
  CHECK_FALSE(cache->isOpen());
  CHECK(rig.table.open(heap) == cache);
  CHECK((cache->isOpen() && cache->isMine()));
}

TEST_CASE("each table knows its own caches, and allows no hits while requests are routed",
          "[engine][part]") {
  TableOfCaches rig, other;
  ThreadCache* const cache = rig.table.open(rig.heapOf(rig.stream()));
  CHECK(rig.table.has(*cache));
  CHECK(rig.table.allowsHits(*cache));
  CHECK_FALSE(other.table.has(*cache));
  CHECK_FALSE(other.table.allowsHits(*cache));
  rig.table.setRouted(true);
  CHECK(rig.table.has(*cache));
  CHECK_FALSE(rig.table.allowsHits(*cache));
  rig.table.setRouted(false);
  CHECK(rig.table.allowsHits(*cache));
}

TEST_CASE("caches have their allocator's handle, whenever they were opened, and no other number",
          "[engine][part]") {
  constexpr std::uint64_t kHandle = 1 << 24;
  ThreadCache* early = nullptr;
  {
    TableOfCaches rig;
    early = rig.table.open(rig.heapOf(rig.stream()));
    const std::uint64_t none = early->handle();
    CHECK((none != 0 && none != ~std::uint64_t{0}));
    rig.table.setHandle(kHandle);
    ThreadCache* const late = rig.table.open(rig.heapOf(rig.stream()));
    CHECK((early->handle() == kHandle && late->handle() == kHandle));
    rig.table.setHandle(0);
    CHECK(early->handle() == none);
    CHECK((late->handle() != kHandle && late->handle() != none));
    rig.table.setHandle(kHandle);
  }
  CHECK(early->handle() != kHandle);
}

TEST_CASE("the biased lock of a cache can be taken though its allocator is gone",
          "[engine][part]") {
  ThreadCache* cache = nullptr;
  {
    TableOfCaches rig;
    cache = rig.table.open(rig.heapOf(rig.stream()));
  }
  CHECK(&CacheTable::last() == cache);
  BiasedLock& biased_lock = cache->biasedLock();
  CHECK(biased_lock.tryLock());
  biased_lock.unlock();
  TableOfCaches next;  // has the thread's counters now, and the caches of the first are no more
  ThreadCache* const own = next.table.open(next.heapOf(next.stream()));
  REQUIRE(own != nullptr);
  CHECK(&CacheTable::last() == own);
  CHECK(&own->biasedLock() == &biased_lock);
  CHECK(biased_lock.tryLock());
  biased_lock.unlock();
  CacheTable::forgetSeen();
  CHECK_FALSE(CacheTable::last().biasedLock().tryLock());
}

TEST_CASE("where there is nothing to keep there are no caches", "[engine][part]") {
  TableOfCaches rig;
  CacheTable none({0, 0, 0}, rig.tick, rig.totals);
  CHECK(none.open(rig.heapOf(rig.stream())) == nullptr);
}

TEST_CASE("who holds a heap's caches has all that they kept, and their owners go without",
          "[engine][part][threads]") {
  TableOfCaches rig;
  Heap& heap = rig.heapOf(rig.stream());
  IdleThread thread;
  void* again = nullptr;
  ThreadCache* const cache = rig.openBy(thread, heap);
  const auto take = [&] {
    return fast_path::allocate(
        *cache, fast_path::Known{}, kKiB, heap.stream(), [](void* pointer) { return pointer; },
        [] { return static_cast<void*>(nullptr); });
  };
  Block& block = rig.allocate(heap, kKiB);
  thread.run([&] {
    const MutexLock lock(heap.mutex());
    cache->blocks().own(block);
    CHECK(cache->accept(block, WhoFreed(nullptr, 0)));
  });
  {
    const MutexLock lock(heap.mutex());
    const HeldCaches held(heap);
    CHECK(held.hadAny());
    CHECK(heap.busyBytes() == 0);
    CHECK_FALSE(cache->keepsAny());
    thread.run([&] { again = take(); });
    CHECK(again == nullptr);
    CHECK_FALSE(HeldCaches(heap).hadAny());
  }
  thread.run([&] { again = take(); });
  CHECK(again == nullptr);  // the biased lock is not revoked; there is nothing
}

}  // namespace cistern::test
