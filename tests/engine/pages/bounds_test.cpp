// How much the pages backing leaves behind: mappings, device calls, reserved memory.
#include "allocator/base/bounds.hpp"

#include "tests/engine/pages/pages_support.hpp"
#include "tests/support/skipped.hpp"
#include "tests/support/slow_build.hpp"

namespace cistern::test {
namespace {

/// Of devices, in GiB.
std::vector<std::uint64_t> capacities() {
  if (kSlowBuild) return {1, 80};
  return {1, 2, 8, 80};
}

std::uint64_t viewsOf(Device& device) {
  return countOf(device, Call::kMap) - countOf(device, Call::kUnmap);
}
std::uint64_t pagesThere(const CachingAllocator& allocator) {
  const PageCounts pages = pagesOf(allocator);
  return pages.created - pages.returned;
}

// Ever larger blocks with a small one left behind each: every round moves all large pages on, and
// nothing brings them back. Some of the work is always queued.
void moveOften(SimRig& rig, Stream stream, int rounds) {
  std::vector<void*> fences;
  for (int i = 0; i < rounds; ++i) {
    void* block = rig.allocator.allocate(std::size_t(16 + 2 * (i % 40)) * kMiB, stream);
    rig.touch(stream, block);
    fences.push_back(rig.allocator.allocate(2 * kMiB, stream));
    rig.allocator.free(block);
    rig.sim().advanceHost(50'000);
    if (fences.size() == 40) {
      for (void* fence : fences) rig.allocator.free(fence);
      fences.clear();
    }
  }
  for (void* fence : fences) rig.allocator.free(fence);
}

/// Large and small blocks, by a seed, that are all freed in the end.
void program(SimRig& rig, Stream stream, std::uint64_t seed, Stream reader = {}) {
  std::mt19937_64 random(seed);
  std::vector<void*> held;
  for (int i = 0; i < 150; ++i) {
    if (held.empty() || random() % 5 < 3) {
      const std::size_t most = random() % 3 == 0 ? 40'000 : 6'000;  // KiB
      held.push_back(rig.allocator.allocate((1 + random() % most) * kKiB, stream));
      rig.touch(stream, held.back());
      if (reader.raw != 0) rig.allocator.recordStream(held.back(), reader);
    } else {
      std::swap(held[random() % held.size()], held.back());
      rig.allocator.free(held.back());
      held.pop_back();
    }
  }
  for (void* block : held) rig.allocator.free(block);
}

}  // namespace

TEST_CASE("mappings that moved pages left behind are removed at later misses", "[engine][pages]") {
  SimRig rig("recycle:eager,background_thread:false", simOf(4 * kGiB, 20'000));
  const Stream stream = rig.stream();
  void* held = rig.allocator.allocate(kKiB, stream);
  for (int i = 0; i < 40; ++i) {
    moveOften(rig, stream, 20);
    CHECK(viewsOf(rig.sim()) <= 6 * pagesThere(rig.allocator) + 64);
  }
  CHECK(pagesOf(rig.allocator).recycled > 100);
  CHECK(pagesOf(rig.allocator).retired > 0);
  CHECK(countOf(rig.sim(), Call::kUnmap) >= pagesOf(rig.allocator).retired);
  rig.allocator.free(held);
  checkAtRest(rig);
}

TEST_CASE("mappings that moved pages left behind are removed in the background",
          "[engine][pages]") {
  SimRig rig("recycle:eager", simOf(4 * kGiB, 20'000));
  const Stream stream = rig.stream();
  void* held = rig.allocator.allocate(kKiB, stream);
  moveOften(rig, stream, 400);
  rig.sim().synchronizeDevice().orThrow();
  CHECK(eventually([&] { return viewsOf(rig.sim()) <= 5 * pagesThere(rig.allocator) + 64; }));
  CHECK(pagesOf(rig.allocator).retired > 0);
  rig.allocator.free(held);
}

TEST_CASE("a program that keeps moving pages does not use up addresses", "[engine][pages]") {
  SimRig rig("recycle:eager,background_thread:false", simOf(kGiB, 20'000));
  const Stream stream = rig.stream();
  void* held = rig.allocator.allocate(kKiB, stream);
  std::mt19937_64 random(1);
  std::vector<void*> blocks;
  std::uint64_t moved_early = 0, reserved_early = 0;
  for (int i = 0; i < 6'000; ++i) {
    if (blocks.size() == 12) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      rig.allocator.free(blocks.back());
      blocks.pop_back();
    }
    blocks.push_back(rig.allocator.allocate((1 + random() % 20) * 2 * kMiB, stream));
    rig.touch(stream, blocks.back());
    rig.sim().advanceHost(10'000);
    if (i == 1'000) {
      moved_early = pagesOf(rig.allocator).recycled;
      reserved_early = countOf(rig.sim(), Call::kReserve);
    }
  }
  CHECK(moved_early > 100);
  CHECK(pagesOf(rig.allocator).recycled > 2 * moved_early);
  CHECK(countOf(rig.sim(), Call::kReserve) <= reserved_early + 1);
  rig.allocator.free(held);
}

TEST_CASE("mappings stay while the work that uses them is queued", "[engine][pages]") {
  SimRig rig("recycle:eager,background_thread:false", simOf(4 * kGiB));
  const Stream stream = rig.stream();
  (void)rig.allocator.allocate(kKiB, stream);
  rig.work.delay(stream, 1'000 * kLongNs);
  moveOften(rig, stream, 39);
  REQUIRE(viewsOf(rig.sim()) > 5 * pagesThere(rig.allocator) + 64);
  CHECK(countOf(rig.sim(), Call::kUnmap) == 0);
  rig.sim().synchronizeDevice().orThrow();
  moveOften(rig, stream, 1);
  (void)rig.allocator.allocate(200 * kMiB, stream);  // a miss
  CHECK(viewsOf(rig.sim()) <= 6 * pagesThere(rig.allocator) + 64);
}

TEST_CASE("a program that repeats itself comes to make no device calls", "[engine][pages]") {
  for (const char* conf : {"background_thread:false", "recycle:eager,background_thread:false"}) {
    for (const std::uint64_t lag : std::initializer_list<std::uint64_t>{0, 100'000}) {
      for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        INFO(conf << ", lag " << lag << ", seed " << seed);
        SimRig rig(std::string(conf) + ",thread_cache:off", simOf(8 * kGiB, lag));
        const Stream stream = rig.stream();
        for (int round = 0; round < 3; ++round) program(rig, stream, seed);
        const std::uint64_t calls = mappingCalls(rig.sim());
        program(rig, stream, seed);
        CHECK(mappingCalls(rig.sim()) == calls);
        checkAtRest(rig);
      }
    }
  }
}

// What a thread keeps it has back where it just was, rather than where it fits best, so rounds are
// not alike to the block.
TEST_CASE("a program that repeats itself with thread caches comes to make hardly any device calls",
          "[engine][pages]") {
  for (const char* conf : {"background_thread:false", "recycle:eager,background_thread:false"}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      INFO(conf << ", seed " << seed);
      SimRig rig(conf, simOf(8 * kGiB));
      const Stream stream = rig.stream();
      program(rig, stream, seed);
      const std::uint64_t first = mappingCalls(rig.sim());
      for (int round = 1; round < 4; ++round) program(rig, stream, seed);
      const std::uint64_t calls = mappingCalls(rig.sim());
      for (int round = 4; round < 8; ++round) program(rig, stream, seed);
      CHECK((mappingCalls(rig.sim()) - calls) * 20 <= first * 4);
      checkAtRest(rig);
    }
  }
}

TEST_CASE("a program that repeats itself on two streams comes to make no device calls",
          "[engine][pages]") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    INFO("seed " << seed);
    SimRig rig("recycle:eager,background_thread:false,thread_cache:off", simOf(8 * kGiB));
    const Stream stream = rig.stream(), reader = rig.stream(), third = rig.stream();
    void* held = rig.allocator.allocate(kKiB, third);
    const auto round = [&] {
      program(rig, stream, seed, reader);
      rig.sim().synchronizeDevice().orThrow();
      for (int hit = 0; hit < 512; ++hit)  // every eighth looks at some that wait
        rig.allocator.free(rig.allocator.allocate(kKiB, third));
      CHECK(nowOf(rig.allocator, Stat::kActive) == nowOf(rig.allocator, Stat::kAllocation));
    };
    for (int i = 0; i < 12; ++i) round();
    const std::uint64_t calls = mappingCalls(rig.sim());
    for (int i = 0; i < 2; ++i) round();
    CHECK(mappingCalls(rig.sim()) == calls);
    rig.allocator.free(held);
  }
}

TEST_CASE("64 streams that are each used once for a gibibyte reserve no more than one",
          "[engine][pages][long]") {
  if (kTightBounds) return skipped("bounds are tight");  // a mark of 64 streams takes more looks
  for (const std::uint64_t capacity : capacities()) {
    INFO(capacity << " GiB");
    // On the simulated device an event that the thread records is late by the lag, too.
    SimRig rig("background_thread:false", simOf(capacity * kGiB, 5'000));
    for (int i = 0; i < 64; ++i) {
      const Stream stream = rig.stream();
      void* block = rig.allocator.allocate(kGiB, stream);
      rig.touch(stream, block);
      rig.allocator.free(block);
      rig.sim().synchronizeStream(stream).orThrow();
    }
    const std::int64_t peak = rig.allocator.memoryStats()[Stat::kReservedBytes].peak;
    CHECK(double(peak) <= 1.1 * double(kGiB));
  }
}

TEST_CASE("memory of streams that were destroyed is found again when there is no other",
          "[engine][pages][long]") {
  SimRig rig("", simOf(4 * kGiB, 5'000));
  for (int i = 0; i < 64; ++i) {
    const Stream stream = rig.stream();
    void* block = rig.allocator.allocate(kGiB, stream);
    rig.touch(stream, block);
    rig.allocator.free(block);
    rig.sim().destroyStream(stream).orThrow();
  }
  rig.allocator.free(rig.allocator.allocate(4 * kGiB));
  checkAtRest(rig);
}

TEST_CASE("a request that grows by a percent 500 times reserves no more than it takes",
          "[engine][pages][long]") {
  for (const std::uint64_t capacity : capacities()) {
    for (const std::uint64_t lag : std::initializer_list<std::uint64_t>{0, 1'000'000}) {
      INFO(capacity << " GiB, lag " << lag);
      SimRig rig("", simOf(capacity * kGiB, lag));
      double bytes = double(capacity * kGiB) / 200;  // and 144 times as much in the end
      double largest = 0;
      for (int i = 0; i < 500; ++i, bytes *= 1.01) {
        void* block = rig.allocator.allocate(std::size_t(bytes));
        rig.touch({}, block);
        rig.allocator.free(block);
        largest = bytes;
      }
      const std::int64_t peak = rig.allocator.memoryStats()[Stat::kReservedBytes].peak;
      CHECK(double(peak) <= 1.1 * largest);
    }
  }
}

TEST_CASE("after 75 percent of the device is freed, 87 percent is served", "[engine][pages]") {
  for (const std::uint64_t capacity : std::initializer_list<std::uint64_t>{1, 2, 8, 80}) {
    INFO(capacity << " GiB");
    SimRig rig("", simOf(capacity * kGiB, 1'000'000));
    const Stream stream = rig.stream();
    const std::uint64_t percent = capacity * kGiB / 100;
    std::vector<void*> parts;
    for (int i = 0; i < 15; ++i) parts.push_back(rig.allocator.allocate(5 * percent, stream));
    for (void* part : parts) rig.touch(stream, part);
    for (void* part : parts) rig.allocator.free(part);
    const std::uint64_t waited = waits(rig.sim());
    void* large = rig.allocator.allocate(87 * percent, stream);
    rig.touch(stream, large);
    CHECK(waits(rig.sim()) == waited);
    rig.allocator.free(large);
    rig.touch(stream, rig.allocator.allocate(87 * percent, stream));
    checkAtRest(rig);
  }
}

}  // namespace cistern::test
