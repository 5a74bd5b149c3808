// Which heaps may have memory for others.
#include "tests/engine/parts_support.hpp"

namespace cistern::test {
namespace {

struct OfferingRig : Parts {
  /// By number, those that are found.
  std::vector<std::size_t> found() {
    std::vector<std::size_t> numbers;
    HeapTable::Search search{pool, HeapTable::From::kGivers};
    while (Heap* const heap = heaps.nextOffering(search)) {
      CHECK(heap == made.at(search.number - 1));
      numbers.push_back(search.number - 1);
    }
    return numbers;
  }
  void make(std::size_t count) {
    while (made.size() < count) made.push_back(&heapOf(stream()));
  }
  static void withdraw(Heap& heap) {
    const MutexLock lock(heap.mutex());
    heap.withdraw();
  }
  /// Whether it is left out when it is looked at.
  static bool offers(Heap& heap) {
    const MutexLock lock(heap.mutex());
    heap.withdrawIfEmpty();
    return !heap.withdrawn();
  }
  void auditAll() {
    Mutex several{LockRank::kSeveralHeaps};
    const MutexLock lock(several);
    std::vector<Heap*> all = heaps.all();
    const HeapLocks locks(several, all);
    heaps.audit(all);
  }

  std::vector<Heap*> made;
};

using Numbers = std::vector<std::size_t>;

}  // namespace

TEST_CASE("a heap that was made may have memory, until somebody has looked", "[engine][part]") {
  OfferingRig rig;
  CHECK(rig.found().empty());
  rig.make(3);
  CHECK(rig.found() == Numbers{0, 1, 2});
  OfferingRig::withdraw(*rig.made[1]);
  CHECK(rig.found() == Numbers{0, 2});
  OfferingRig::withdraw(*rig.made[1]);
  OfferingRig::withdraw(*rig.made[2]);
  CHECK(rig.found() == Numbers{0});
  rig.auditAll();
  rig.make(4);
  CHECK(rig.found() == Numbers{0, 3});
  rig.auditAll();
}

TEST_CASE("a heap is found behind many that have nothing", "[engine][part]") {
  constexpr std::size_t kMany = 300;
  OfferingRig rig;
  rig.make(kMany);
  for (std::size_t i = 1; i < kMany; ++i) {
    if (i != 63 && i != 64 && i != kMany - 1) OfferingRig::withdraw(*rig.made[i]);
  }
  CHECK(rig.found() == Numbers{0, 63, 64, kMany - 1});
  for (std::size_t number = kMany; number < kMany + 2; ++number) {
    HeapTable::Search search{rig.pool, HeapTable::From::kGivers, 0, number};
    CHECK(rig.heaps.nextOffering(search) == nullptr);
  }
  rig.auditAll();
}

TEST_CASE("a heap is looked into again when memory is freed there, or comes", "[engine][part]") {
  OfferingRig rig;
  rig.make(2);
  Heap& heap = *rig.made[0];
  Block& block = rig.allocate(heap, 20 * kMiB);
  OfferingRig::withdraw(heap);
  CHECK(rig.found() == Numbers{1});
  Parts::release(block);
  CHECK(rig.found() == Numbers{0, 1});
  rig.auditAll();
  OfferingRig::withdraw(heap);
  rig.addSegment(heap, 20 * kMiB);
  CHECK(rig.found() == Numbers{0, 1});
  rig.auditAll();
}

TEST_CASE("a heap of segments has something for others only when one is wholly free",
          "[engine][part]") {
  OfferingRig rig;
  rig.make(1);
  Heap& heap = *rig.made[0];
  CHECK_FALSE(OfferingRig::offers(heap));
  Block& block = rig.allocate(heap, 11 * kMiB);
  rig.addSegment(heap, 2 * kMiB, SizeKind::kSmall);
  CHECK(OfferingRig::offers(heap));
  Block& small = rig.allocate(heap, kKiB);
  CHECK_FALSE(OfferingRig::offers(heap));
  Parts::release(block);
  CHECK(OfferingRig::offers(heap));
  Parts::release(small);
}

}  // namespace cistern::test
