// What is said and done when memory cannot be had, and that the allocator is as usable after it.
#include "tests/engine/engine_support.hpp"
#include "tests/support/interposed_device.hpp"

namespace cistern::test {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("the limit is respected to the byte", "[engine]") {
  SimRig rig("limit:64M");
  CachingAllocator& allocator = rig.allocator;
  CHECK(allocator.limit() == 64 * kMiB);
  void* a = allocator.allocate(62 * kMiB);
  void* b = allocator.allocate(kMiB);
  CHECK(reservedOf(allocator) == mib(64));
  void* c = allocator.allocate(kMiB);
  CHECK_THROWS_AS(allocator.allocate(1), OutOfMemory);
  allocator.setLimit(66 * kMiB - 1);
  CHECK_THROWS_AS(allocator.allocate(1), OutOfMemory);
  allocator.setLimit(66 * kMiB);
  void* d = allocator.allocate(1);
  allocator.setLimit(2 * kMiB);  // what is there stays
  CHECK(allocator.allocate(511) != nullptr);
  CHECK(reservedOf(allocator) == mib(66));
  for (void* block : {a, b, c, d}) allocator.free(block);
}

TEST_CASE("a fraction of the device is a limit", "[engine]") {
  SimRig rig("per_process_memory_fraction:0.5", simOf(128 * kMiB));
  CHECK(rig.allocator.limit() == 64 * kMiB);
  CHECK_THROWS_AS(rig.allocator.allocate(66 * kMiB), OutOfMemory);
  rig.allocator.setMemoryFraction(0.75);
  CHECK(rig.allocator.limit() == 96 * kMiB);
  rig.allocator.free(rig.allocator.allocate(66 * kMiB));
  for (double wrong : {0.0, -1.0, 1.5}) {
    CHECK_THROWS_AS(rig.allocator.setMemoryFraction(wrong), InvalidArgument);
  }
  CHECK(rig.allocator.limit() == 96 * kMiB);
}

TEST_CASE("a number of bytes over the device's is a limit of just those bytes", "[engine]") {
  const std::uint64_t total = 80 * kGiB - 12345;
  SimRig rig({}, simOf(total));
  for (std::uint64_t bytes = 1; bytes <= total; bytes += bytes / 7 + 1) {
    rig.allocator.setMemoryFraction(double(bytes) / double(total));
    REQUIRE(rig.allocator.limit() == bytes);
  }
  rig.allocator.setMemoryFraction(1);
  CHECK(rig.allocator.limit() == total);
}

TEST_CASE("the smaller of limit and fraction counts", "[engine]") {
  CHECK(SimRig("limit:32M,memory_fraction:0.5", simOf(128 * kMiB)).allocator.limit() == 32 * kMiB);
  CHECK(SimRig("limit:96M,memory_fraction:0.5", simOf(128 * kMiB)).allocator.limit() == 64 * kMiB);
}

TEST_CASE("more than the device could ever hold is out of memory at once", "[engine][gpu-too]") {
  forEachBackend([](DeviceWork& work) {
    INFO("backend: " << work.device().backend());
    CachingAllocator allocator(work.device(), optionsOf());
    void* held = allocator.allocate(kMiB);
    allocator.free(allocator.allocate(20 * kMiB));
    const CallCounts before = work.device().callCounts();
    const std::int64_t reserved = reservedOf(allocator);
    const std::uint64_t total = work.device().memoryInfo().orThrow().total_bytes;
    for (std::uint64_t bytes : {total + 1, 2 * kTiB, std::uint64_t{1} << 60,
                                (std::uint64_t{1} << 60) + 1, ~std::uint64_t{0}}) {
      CHECK_THROWS_AS(allocator.allocate(bytes), OutOfMemory);
    }
    const CallCounts after = work.device().callCounts();
    for (Call call :
         {Call::kMalloc, Call::kFree, Call::kReserve, Call::kCreatePage, Call::kMap, Call::kUnmap,
          Call::kReleasePage, Call::kSynchronizeDevice, Call::kCaptureInfo}) {
      CHECK(after[std::size_t(call)] == before[std::size_t(call)]);
    }
    CHECK(reservedOf(allocator) == reserved);
    CHECK(allocator.memoryStats().num_ooms == 5);
    allocator.free(held);
    allocator.audit();
  });
}

TEST_CASE("the report says what was asked, who holds what, and what would have made it fit",
          "[engine]") {
  SimRig rig("limit:100M");
  CachingAllocator& allocator = rig.allocator;
  const Stream a = rig.stream(), b = rig.stream();
  void* large = allocator.allocate(60 * kMiB, a);
  void* medium = allocator.allocate(11 * kMiB - 512, b);
  void* small = allocator.allocate(kKiB, a);
  try {
    (void)allocator.allocate(40 * kMiB + 1, b);
    FAIL("it fitted");
  } catch (const OutOfMemory& error) {
    const OutOfMemoryReport& report = error.report();
    CHECK(report.requested == 40 * kMiB + 1);
    CHECK(report.rounded == 40 * kMiB + 512);
    // Pages can go on where the heap's last block ends: behind the 1 MiB that is free there.
    CHECK(report.segment == (onPages(allocator) ? 40 : 42) * kMiB);
    CHECK(report.stream == b);
    CHECK(report.limit == 100 * kMiB);
    CHECK(report.device_total == kGiB);
    CHECK(report.device_free == kGiB - 74 * kMiB);
    CHECK(report.reserved == 74 * kMiB);
    CHECK(report.allocated == 71 * kMiB + 512);
    REQUIRE(report.heaps.size() == 2);
    CHECK(report.heaps[0].stream == a);
    CHECK(report.heaps[0].reserved == 62 * kMiB);
    CHECK(report.heaps[0].free == 2 * kMiB - kKiB);
    CHECK(report.heaps[0].largest_free == 2 * kMiB - kKiB);
    CHECK(report.heaps[1].free == kMiB + 512);
    REQUIRE(report.holders.size() == 3);
    CHECK(report.holders[0].address == toAddress(large));
    CHECK(report.holders[1].address == toAddress(medium));
    CHECK(report.holders[2].address == toAddress(small));
    CHECK(report.advice() == std::string("A limit higher by ") +
                                 (onPages(allocator) ? "14.00" : "16.00") +
                                 " MiB would have made it fit.");
    CHECK_THAT(error.what(), ContainsSubstring("40.00 MiB asked for"));
    CHECK_THAT(error.what(), ContainsSubstring("allowed 100.00 MiB"));
    CHECK_THAT(error.what(), ContainsSubstring("largest blocks held"));
  }
  const std::uint64_t least = (onPages(allocator) ? 114 : 116) * kMiB;
  allocator.setLimit(least - 1);
  CHECK_THROWS_AS(allocator.allocate(40 * kMiB + 1, b), OutOfMemory);
  allocator.setLimit(least);
  CHECK(allocator.allocate(40 * kMiB + 1, b) != nullptr);
}

TEST_CASE("the text has the heaps that reserve most, and counts the others", "[engine]") {
  SimRig rig("", simOf(600 * kMiB));  // 20 MiB for each, where they come in segments
  for (std::size_t i = 0; i < 20; ++i)
    (void)rig.allocator.allocate(i == 7 ? 30 * kMiB : 2 * kMiB, rig.stream());
  try {
    (void)rig.allocator.allocate(590 * kMiB, Stream{});
    FAIL("it fitted");
  } catch (const OutOfMemory& error) {
    CHECK(error.report().heaps.size() == 20);
    CHECK_THAT(error.what(), ContainsSubstring("reserved 30.00 MiB"));
    CHECK_THAT(error.what(), ContainsSubstring("and 4 more"));
  }
}

TEST_CASE("where limit and device are both too small, the advice has both", "[engine]") {
  SimRig rig("", simOf(200 * kMiB));
  rig.sim().foreignUse(100 * kMiB);
  rig.allocator.setLimit(60 * kMiB);
  try {
    (void)rig.allocator.allocate(150 * kMiB, Stream{});
    FAIL("it fitted");
  } catch (const OutOfMemory& error) {
    CHECK(error.report().advice() ==
          "A limit higher by 90.00 MiB and 50.00 MiB more device memory would have made it fit.");
  }
}

TEST_CASE("the report shows what queued work keeps, and other programs hold", "[engine]") {
  SimRig rig("", simOf(100 * kMiB));
  const Stream own = rig.stream(), stuck = rig.stream();
  rig.sim().foreignUse(30 * kMiB);
  void* block = rig.allocator.allocate(40 * kMiB, own);
  rig.allocator.recordStream(block, stuck);
  rig.neverEnd(stuck);
  rig.allocator.free(block);
  try {
    (void)rig.allocator.allocate(50 * kMiB, own);
    FAIL("it fitted");
  } catch (const OutOfMemory& error) {
    REQUIRE(error.report().heaps.size() == 1);
    CHECK(error.report().heaps[0].pending == 40 * kMiB);
    CHECK(error.report().allocated == 0);
    CHECK(error.report().device_free == 30 * kMiB);
    CHECK_THAT(error.report().device_error, ContainsSubstring("out of memory"));
    CHECK_THAT(error.report().advice(), ContainsSubstring("40.00 MiB is freed, but queued work"));
    CHECK_THAT(error.report().advice(), ContainsSubstring("20.00 MiB more device memory"));
    CHECK_THAT(error.report().advice(), ContainsSubstring("hold 30.00 MiB"));
  }
  rig.sim().foreignUse(10 * kMiB);
  CHECK(rig.allocator.allocate(50 * kMiB, own) != nullptr);
}

TEST_CASE("observers are called once each, without a lock", "[engine]") {
  SimRig rig("", simOf(64 * kMiB));
  CachingAllocator& allocator = rig.allocator;
  void* held = allocator.allocate(40 * kMiB);
  int first = 0, second = 0;
  allocator.attachOutOfMemoryObserver([&](const OutOfMemoryReport& report) {
    ++first;
    CHECK(report.requested == 30 * kMiB);
    CHECK(allocator.memoryStats().num_ooms == 1);
    allocator.free(std::exchange(held, nullptr));
    allocator.attachOutOfMemoryObserver([](const OutOfMemoryReport&) {});
    allocator.free(allocator.allocate(kMiB));
    allocator.audit();
  });
  allocator.attachOutOfMemoryObserver([&](const OutOfMemoryReport&) { ++second; });
  CHECK_THROWS_AS(allocator.allocate(30 * kMiB), OutOfMemory);
  CHECK(first == 1);
  CHECK(second == 1);
  void* retried = allocator.allocate(30 * kMiB);  // at once: the observer made room
  allocator.free(retried);
}

TEST_CASE("after an out of memory a free and a retry at once work", "[engine][gpu-too]") {
  forEachBackend([](DeviceWork& work) {
    INFO("backend: " << work.device().backend());
    CachingAllocator allocator(work.device(), optionsOf("limit:16M"));
    const Streams streams(allocator, 2);
    for (int round = 0; round < 3; ++round) {
      void* a = allocator.allocate(8 * kMiB, streams[0]);
      void* b = allocator.allocate(8 * kMiB, streams[1]);
      work.fill(streams[0], toAddress(a), 8 * kMiB, 1);
      work.fill(streams[1], toAddress(b), 8 * kMiB, 2);
      CHECK_THROWS_AS(allocator.allocate(8 * kMiB, streams[0]), OutOfMemory);
      allocator.free(b);
      void* c = allocator.allocate(8 * kMiB, streams[0]);
      work.fill(streams[0], toAddress(c), 8 * kMiB, 3);
      work.verify(streams[0], toAddress(a), 8 * kMiB, 1);
      work.verify(streams[0], toAddress(c), 8 * kMiB, 3);
      CHECK(work.mismatches() == 0);
      allocator.free(a);
      allocator.free(c);
      allocator.audit();
    }
  });
}

// The device has memory for many pages of the request, but not for all.
TEST_CASE("a request that is a little too large is refused before its pages are made",
          "[engine][pages]") {
  const bool others = GENERATE(false, true), cached = GENERATE(false, true);
  SimRig rig("", simOf(64 * kGiB));
  if (others) (void)rig.sim().malloc(8 * kGiB).orThrow();
  const Stream stream = rig.stream();
  void* const held = rig.allocator.allocate(4 * kGiB, stream);
  if (cached) {
    std::vector<void*> blocks;
    for (int i = 0; i < 40; ++i) blocks.push_back(rig.allocator.allocate(kGiB, stream));
    for (void* block : blocks) rig.allocator.free(block);
  }
  const std::uint64_t here = std::uint64_t(reservedOf(rig.allocator)) - 4 * kGiB;
  const std::uint64_t free = rig.sim().memoryInfo().orThrow().free_bytes + here;
  const CallCounts before = rig.sim().callCounts();
  CHECK_THROWS_AS(rig.allocator.allocate(free + 2 * kMiB, stream), OutOfMemory);
  const CallCounts after = rig.sim().callCounts();
  const auto made = [&](Call call) { return after[std::size_t(call)] - before[std::size_t(call)]; };
  CHECK(made(Call::kCreatePage) <= 4);
  CHECK(made(Call::kMap) == 0);
  // What there is for it, it gets.
  void* const rest = rig.allocator.allocate(free - 64 * kMiB, stream);
  rig.allocator.free(rest);
  rig.allocator.free(held);
}

TEST_CASE("a limit refuses a request that is a little too large without a device call",
          "[engine][pages]") {
  SimRig rig("", simOf(64 * kGiB));
  rig.allocator.setLimit(32 * kGiB);
  void* const held = rig.allocator.allocate(4 * kGiB);
  const CallCounts before = rig.sim().callCounts();
  CHECK_THROWS_AS(rig.allocator.allocate(28 * kGiB + 2 * kMiB), OutOfMemory);
  const CallCounts after = rig.sim().callCounts();
  for (const Call call : {Call::kCreatePage, Call::kReleasePage, Call::kMap, Call::kUnmap})
    CHECK(after[std::size_t(call)] == before[std::size_t(call)]);
  rig.allocator.free(rig.allocator.allocate(27 * kGiB));
  rig.allocator.free(held);
}

// A driver's own pools may give way, and so may another program.
TEST_CASE("memory that the device has beyond what it says serves a request", "[engine][pages]") {
  SimWork work(simOf(64 * kGiB));
  InterposedDevice device(work.device());
  CachingAllocator allocator(device, optionsOf());
  Address others = 0;
  int asked = 0;
  device.before = [&](Call call) {
    if (call == Call::kMemoryInfo && ++asked > 0 && others == 0)
      others = work.sim().malloc(40 * kGiB).orThrow();
    if (call == Call::kCreatePage && others != 0)
      work.sim().free(std::exchange(others, 0)).orThrow();
  };
  allocator.free(allocator.allocate(60 * kGiB));
  CHECK(asked == 1);
  allocator.audit();
}

TEST_CASE("a request that nearly fits leaves what is held as it was", "[engine]") {
  SimRig rig("", simOf(64 * kMiB));
  const Stream a = rig.stream(), b = rig.stream();
  std::vector<void*> held;
  for (int i = 0; i < 3; ++i) held.push_back(rig.allocator.allocate(20 * kMiB, i == 1 ? a : b));
  for (int i = 0; i < 10; ++i) {
    CHECK_THROWS_AS(rig.allocator.allocate(20 * kMiB, a), OutOfMemory);
    CHECK(reservedOf(rig.allocator) == mib(60));
    CHECK(nowOf(rig.allocator, Stat::kAllocation) == 3);
    rig.allocator.audit();
  }
  for (void* block : held) rig.allocator.free(block);
}

}  // namespace cistern::test
