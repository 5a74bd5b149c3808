// Pages that go back to the device, and what happens at a limit.
#include "tests/engine/pages/pages_support.hpp"
#include "tests/support/meanwhile.hpp"

namespace cistern::test {

TEST_CASE("emptyCache gives free pages back at once when their work is complete",
          "[engine][pages]") {
  for (const char* conf : {"", "recycle:eager", "background_thread:false"}) {
    INFO(conf);
    SimRig rig(conf, simOf(kGiB, 20'000));
    const Streams streams(rig.allocator, 3);
    std::vector<void*> blocks;
    for (std::size_t i = 0; i < 30; ++i) {
      blocks.push_back(rig.allocator.allocate((1 + i % 7) * 3 * kMiB, streams[i % 3]));
      rig.touch(streams[i % 3], blocks.back());
    }
    void* held = rig.allocator.allocate(2 * kMiB, streams[0]);
    for (void* block : blocks) rig.allocator.free(block);
    rig.sim().synchronizeDevice().orThrow();
    rig.allocator.emptyCache();
    CHECK(reservedOf(rig.allocator) <= mib(16));  // the page that the held block lies in
    checkAtRest(rig);
    rig.allocator.free(held);
    rig.allocator.emptyCache();
    CHECK(takenOf(rig.sim()) == 0);
    CHECK(countOf(rig.sim(), Call::kMap) == countOf(rig.sim(), Call::kUnmap));
  }
}

TEST_CASE("emptyCache does not wait, and what is in use follows at a later miss",
          "[engine][pages]") {
  SimRig rig("background_thread:false", simOf(kGiB));
  const Stream busy = rig.stream(), other = rig.stream();
  void* block = rig.allocator.allocate(64 * kMiB, busy);
  rig.work.delay(busy, kLongNs);
  rig.touch(busy, block);
  rig.allocator.free(block);
  const std::uint64_t waited = waits(rig.sim());
  rig.allocator.emptyCache();
  CHECK(waits(rig.sim()) == waited);
  CHECK(rig.sim().now() < kLongNs);
  CHECK(reservedOf(rig.allocator) == mib(64));
  rig.sim().advanceHost(2 * kLongNs);
  void* small = rig.allocator.allocate(kKiB, other);  // a miss
  CHECK(reservedOf(rig.allocator) == mib(2));
  rig.allocator.free(small);
  checkAtRest(rig);
}

TEST_CASE("what emptyCache found in use follows by itself", "[engine][pages]") {
  SimRig rig("", simOf(kGiB));
  const Stream busy = rig.stream();
  void* block = rig.allocator.allocate(64 * kMiB, busy);
  rig.work.delay(busy, kLongNs);
  rig.touch(busy, block);
  rig.allocator.free(block);
  rig.allocator.emptyCache();
  CHECK(reservedOf(rig.allocator) == mib(64));
  rig.sim().advanceHost(2 * kLongNs);
  CHECK(eventually([&] { return reservedOf(rig.allocator) == 0; }));
  CHECK(eventually([&] { return takenOf(rig.sim()) == 0; }));
  CHECK(waits(rig.sim()) == 0);
}

TEST_CASE("it follows by itself while another thread makes a mark", "[engine][pages]") {
  sim::SimDevice sim(simOf(kGiB));
  InterposedDevice device(sim);
  CachingAllocator allocator(device);
  const Stream s = sim.createStream().orThrow(), other = sim.createStream().orThrow();
  void* const first = allocator.allocate(64 * kMiB, s);
  void* const second = allocator.allocate(64 * kMiB, s);
  void* const third = allocator.allocate(64 * kMiB, s);
  allocator.free(first);
  allocator.free(allocator.allocate(32 * kMiB, other));  // looks for memory in the heap of `s`
  {
    // The second is freed too late for the mark that the free of the third makes.
    Meanwhile meanwhile(device, Call::kQueryStream, [&] {
      allocator.free(second);
      allocator.emptyCache();
    });
    allocator.free(third);
    REQUIRE(meanwhile.wait());
  }
  CHECK(eventually([&] { return reservedOf(allocator) == 0; }));
  CHECK(eventually([&] { return takenOf(sim) == 0; }));
}

TEST_CASE("an allocator may go while pages wait for queued work", "[engine][pages]") {
  SimWork work(simOf(kGiB));
  {
    CachingAllocator allocator(work.device(), Options::parse("recycle:eager"));
    const Stream stream = work.sim().createStream().orThrow();
    for (std::size_t i = 1; i < 8; ++i) {
      void* block = allocator.allocate(i * 12 * kMiB, stream);
      work.delay(stream, kLongNs);
      work.fill(stream, toAddress(block), kKiB, 1);
      (void)allocator.allocate(2 * kMiB, stream);
      allocator.free(block);
      allocator.emptyCache();
    }
  }
  CHECK(takenOf(work.sim()) == 0);
  CHECK(countOf(work.sim(), Call::kReserve) == countOf(work.sim(), Call::kFreeReservation));
  CHECK(work.sim().races().empty());
}

TEST_CASE("what is used again after emptyCache stays", "[engine][pages]") {
  SimRig rig("background_thread:false", simOf(kGiB));
  const Stream busy = rig.stream();
  void* block = rig.allocator.allocate(64 * kMiB, busy);
  rig.work.delay(busy, kLongNs);
  rig.touch(busy, block);
  rig.allocator.free(block);
  rig.allocator.emptyCache();
  block = rig.allocator.allocate(64 * kMiB, busy);
  rig.sim().advanceHost(2 * kLongNs);
  (void)rig.allocator.allocate(kKiB, busy);
  CHECK(reservedOf(rig.allocator) == mib(66));
  rig.touch(busy, block);
  checkAtRest(rig);
}

TEST_CASE("emptyCache gives back pages that came from streams known later", "[engine][pages]") {
  SimRig rig("limit:64M,background_thread:false", simOf(kGiB));
  const Stream taker = rig.stream(), giver = rig.stream();
  void* small = rig.allocator.allocate(2 * kMiB, taker);  // the taker's heap is the older
  void* block = rig.allocator.allocate(60 * kMiB, giver);
  rig.work.delay(giver, kLongNs);
  rig.touch(giver, block);
  rig.allocator.free(block);
  block = rig.allocator.allocate(50 * kMiB, taker);  // after the giver's work
  rig.touch(taker, block);
  rig.allocator.free(block);
  rig.allocator.free(small);
  rig.sim().synchronizeDevice().orThrow();
  rig.allocator.emptyCache();
  CHECK(reservedOf(rig.allocator) == 0);
  checkAtRest(rig);
}

TEST_CASE("at a limit pages move, and none are made", "[engine][pages]") {
  for (const char* conf : {"limit:64M,background_thread:false,recycle_budget:none",
                           "limit:64M,background_thread:false,recycle:eager"}) {
    INFO(conf);
    SimRig rig(conf, simOf(kGiB, 1'000'000));
    const Stream s = rig.stream();
    void* low = rig.allocator.allocate(30 * kMiB, s);
    void* held = rig.allocator.allocate(2 * kMiB, s);
    void* high = rig.allocator.allocate(30 * kMiB, s);
    for (void* block : {low, held, high}) rig.touch(s, block);
    rig.allocator.free(low);
    rig.allocator.free(high);
    const std::uint64_t waited = waits(rig.sim());
    void* large = rig.allocator.allocate(60 * kMiB, s);
    rig.touch(s, large);
    CHECK(waits(rig.sim()) == waited);
    CHECK(rig.allocator.memoryStats()[Stat::kReservedBytes].peak <= mib(64));
    CHECK(pagesOf(rig.allocator).recycled > 0);
    checkAtRest(rig);
  }
}

TEST_CASE("at a limit another stream's pages are taken after its queued work", "[engine][pages]") {
  SimRig rig("limit:64M,background_thread:false", simOf(kGiB));
  const Stream giver = rig.stream(), taker = rig.stream();
  void* held = rig.allocator.allocate(2 * kMiB, giver);
  void* block = rig.allocator.allocate(60 * kMiB, giver);
  rig.work.delay(giver, kLongNs);
  rig.touch(giver, block);
  rig.allocator.free(block);
  const std::uint64_t orders = countOf(rig.sim(), Call::kWaitEvent), waited = waits(rig.sim());
  void* taken = rig.allocator.allocate(40 * kMiB, taker);
  rig.touch(taker, taken);
  CHECK(countOf(rig.sim(), Call::kWaitEvent) == orders + 1);
  CHECK(waits(rig.sim()) == waited);
  CHECK(rig.sim().now() < kLongNs);
  CHECK(reservedOf(rig.allocator) <= mib(64));
  rig.touch(giver, held);
  // And back again, while the taker's work is queued.
  rig.allocator.free(taken);
  rig.touch(giver, rig.allocator.allocate(60 * kMiB, giver));
  checkAtRest(rig);
}

TEST_CASE("below a limit pages of queued work on other streams are left alone", "[engine][pages]") {
  SimRig rig("background_thread:false", simOf(kGiB));
  const Stream giver = rig.stream(), taker = rig.stream();
  void* block = rig.allocator.allocate(60 * kMiB, giver);
  rig.work.delay(giver, kLongNs);
  rig.touch(giver, block);
  rig.allocator.free(block);
  rig.touch(taker, rig.allocator.allocate(40 * kMiB, taker));
  CHECK(countOf(rig.sim(), Call::kWaitEvent) == 0);
  CHECK(pagesOf(rig.allocator).recycled == 0);
}

TEST_CASE("garbage collection gives back what was unused longest", "[engine][pages]") {
  SimRig rig("limit:200M,garbage_collection_threshold:0.5,background_thread:false,recycle:off",
             simOf(kGiB, 20'000));
  const Stream old = rig.stream(), young = rig.stream(), third = rig.stream();
  rig.allocator.free(rig.allocator.allocate(80 * kMiB, old));
  for (int i = 0; i < 10; ++i) {
    void* block = rig.allocator.allocate(std::size_t(40 + 2 * i) * kMiB, young);
    rig.touch(young, block);
    rig.allocator.free(block);
    rig.sim().synchronizeDevice().orThrow();
  }
  REQUIRE(reservedOf(rig.allocator) > 0);
  const std::uint64_t returned = pagesOf(rig.allocator).returned;
  rig.allocator.free(rig.allocator.allocate(4 * kMiB, third));
  CHECK(reservedOf(rig.allocator) <= mib(100 + 6));
  CHECK(pagesOf(rig.allocator).returned > 0);
  CHECK(pagesOf(rig.allocator).returned >= returned);
  checkAtRest(rig);
}

}  // namespace cistern::test
