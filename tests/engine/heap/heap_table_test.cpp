// From a stream to its heap, and what becomes of heaps when streams and pools go.
#include "allocator/engine/core/heap_table.hpp"

#include <algorithm>

#include "tests/engine/parts_support.hpp"
#include "tests/support/threads.hpp"

namespace cistern::test {
namespace {

Stream numbered(std::uintptr_t raw) { return Stream{0x1000 + raw * 64}; }

struct TableRig : Parts {
  TableRig() {
    for (Pool* one : {&first, &second}) one->open({0, 1}, {}, rules, MemoryKind::kSegments);
  }
  Heap& inPool(Pool& of, Stream stream) { return heaps.findOrMake(of, stream); }

  // Before the table's heaps go, which nobody asks for their pools then.
  Pool first{false, rules, MemoryKind::kSegments}, second{false, rules, MemoryKind::kSegments};
};

}  // namespace

TEST_CASE("a stream has one heap, which is found from then on", "[engine][part]") {
  TableRig rig;
  std::vector<Heap*> made;
  for (std::uintptr_t i = 0; i < 300; ++i) {
    CHECK(rig.heaps.find(numbered(i)) == nullptr);
    made.push_back(&rig.heapOf(numbered(i)));
    CHECK(&rig.heapOf(numbered(i)) == made.back());
  }
  for (std::uintptr_t i = 0; i < 300; ++i) CHECK(rig.heaps.find(numbered(i)) == made[i]);
  CHECK(rig.heaps.find(Stream{}) == nullptr);
  CHECK(rig.heaps.all() == made);
}

TEST_CASE("a heap whose stream is forgotten is not found, and may be parked", "[engine][part]") {
  TableRig rig;
  Heap& heap = rig.heapOf(numbered(1));
  Heap& other = rig.heapOf(numbered(2));
  CHECK(rig.heaps.nextForgotten() == nullptr);
  CHECK_FALSE(rig.heaps.park(heap));
  CHECK(rig.heaps.find(numbered(1)) == &heap);  // which this thread remembers
  rig.heaps.setForgotten(numbered(1), true);
  CHECK(rig.heaps.find(numbered(1)) == nullptr);
  CHECK(rig.heaps.nextForgotten() == &heap);
  rig.heaps.setForgotten(numbered(2), true);
  Heap* const some = rig.heaps.nextForgotten();
  Heap* const another = rig.heaps.nextForgotten();
  CHECK(std::minmax(some, another) == std::minmax(&heap, &other));
  CHECK(rig.heaps.park(heap));
  CHECK_FALSE(rig.heaps.park(heap));
  CHECK(rig.heaps.nextForgotten() == &other);
  CHECK(&rig.inPool(rig.first, numbered(3)) != &heap);  // it goes on in the default pool
  CHECK(&rig.heapOf(numbered(3)) == &heap);
}

TEST_CASE("a stream that comes back has its heap again, and nobody else gets that",
          "[engine][part]") {
  TableRig rig;
  Heap& heap = rig.heapOf(numbered(1));
  rig.heaps.setForgotten(numbered(1), true);
  Heap* const found = rig.heaps.nextForgotten();
  REQUIRE(found == &heap);
  rig.heaps.setForgotten(numbered(1), false);
  CHECK(rig.heaps.nextForgotten() == nullptr);
  CHECK(rig.heaps.find(numbered(1)) == &heap);
  CHECK_FALSE(rig.heaps.park(*found));  // it is in use again
  CHECK(&rig.heapOf(numbered(2)) != &heap);
}

TEST_CASE("a parked heap becomes a new stream's, and one that holds memory is not parked",
          "[engine][part]") {
  TableRig rig;
  Heap& empty = rig.heapOf(numbered(1));
  Heap& full = rig.heapOf(numbered(2));
  Parts::release(rig.allocate(full, kMiB));
  for (const std::uintptr_t raw : {1u, 2u}) rig.heaps.setForgotten(numbered(raw), true);
  for (std::uintptr_t raw = 3; raw < 5; ++raw) {
    Heap* const spare = rig.heaps.nextForgotten();
    REQUIRE(spare != nullptr);
    CHECK(rig.heaps.park(*spare) == (spare == &empty));
    Heap& heap = rig.heapOf(numbered(raw));
    CHECK((&heap == spare) == (spare == &empty));
    CHECK(heap.stream() == numbered(raw));
    CHECK_FALSE(heap.forgotten());
    CHECK(rig.heaps.find(numbered(raw)) == &heap);
  }
  CHECK(rig.heaps.find(numbered(1)) == nullptr);
  CHECK(rig.heaps.nextForgotten() == &full);
  CHECK(rig.heaps.all().size() == 3);
}

TEST_CASE("streams that come and go for ever leave no more than was there at once",
          "[engine][part]") {
  TableRig rig;
  rig.heapOf(numbered(0));
  std::size_t bytes = 0;
  for (std::uintptr_t raw = 1; raw < 2'000; ++raw) {
    rig.heaps.setForgotten(numbered(raw - 1), true);
    CHECK(rig.heaps.park(*rig.heaps.nextForgotten()));
    rig.heapOf(numbered(raw));
    if (raw == 100) bytes = rig.heaps.hostBytes();
  }
  CHECK(rig.heaps.all().size() == 1);
  CHECK(rig.heaps.hostBytes() == bytes);
  CHECK(rig.heaps.find(numbered(1'999)) == rig.heaps.all().front());
}

TEST_CASE("a heap that leaves its pool waits for another one with that backing", "[engine][part]") {
  TableRig rig;
  const Stream a = numbered(1), b = numbered(2);
  Heap& heap = rig.inPool(rig.first, a);
  CHECK(rig.first.find(a) == &heap);
  CHECK(rig.heaps.find(a) == nullptr);  // of the default pool
  Block& block = rig.allocate(heap, kMiB);
  CHECK_FALSE(rig.heaps.park(heap));
  rig.first.drain();
  CHECK_FALSE(rig.heaps.park(heap));
  Parts::release(block);
  CHECK_FALSE(rig.heaps.park(heap));
  {
    const MutexLock lock(heap.mutex());
    heap.remove(segmentOf(block), true);
  }
  CHECK(rig.heaps.park(heap));
  CHECK(rig.first.find(a) == nullptr);
  CHECK(rig.first.heaps().empty());
  Pool on_pages(false, rig.rules, MemoryKind::kPages);
  on_pages.open({0, 3}, {}, rig.rules, MemoryKind::kPages);
  CHECK(&rig.inPool(on_pages, b) != &heap);
  CHECK(&rig.inPool(rig.second, b) == &heap);
  CHECK(rig.second.find(b) == &heap);
  rig.heaps.setForgotten(b, true);
  CHECK(rig.second.find(b) == nullptr);
}

TEST_CASE("streams are found while other threads make heaps, and by all the same",
          "[engine][part][threads]") {
  TableRig rig;
  std::atomic<int> wrong{0};
  std::array<std::atomic<Heap*>, 200> seen{};
  onThreads(4, [&](std::size_t thread) {
    for (std::uintptr_t i = 0; i < 200; ++i) {
      Heap& heap = rig.heapOf(numbered(i));
      Heap* expected = nullptr;
      std::atomic<Heap*>& first_seen = seen[i];
      if (!first_seen.compare_exchange_strong(expected, &heap)) wrong += expected != &heap;
      wrong += rig.heaps.find(numbered(i * thread / 4)) == nullptr;
    }
  });
  CHECK(wrong == 0);
  CHECK(rig.heaps.all().size() == 200);
}

}  // namespace cistern::test
