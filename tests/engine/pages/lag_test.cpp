// What a stream has finished with serves others as soon as that is complete, also while the stream
// is at work all the time: the GPU is some way behind the host, and the stream never idle.
#include "tests/engine/pages/pages_support.hpp"

namespace cistern::test {
namespace {

constexpr std::uint64_t kLag = 10'000'000;

struct LagRig : SimRig {
  LagRig()
      : SimRig("backing:pages,background_thread:false,thread_cache:off", simOf(4 * kGiB, kLag)),
        kept(allocator.allocate(kMiB, giver)) {}
  ~LagRig() {
    allocator.free(kept);
    checkAtRest(*this);
  }

  void* written(std::size_t bytes) {
    void* block = allocator.allocate(bytes, giver);
    touch(giver, block);
    return block;
  }
  /// Time goes by, and the giver is busy at the end of it.
  void pass(std::uint64_t ns) {
    sim().advanceHost(ns);
    touch(giver, kept);
  }
  /// The taker misses. How many pages were made for it.
  std::uint64_t makes(std::size_t bytes) {
    const std::uint64_t before = pagesOf(allocator).created;
    touch(taker, allocator.allocate(bytes, taker));
    return pagesOf(allocator).created - before;
  }

  const Stream giver = stream(), taker = stream();
  void* const kept;
};

}  // namespace

TEST_CASE("free memory beside which a stream works on serves another", "[engine][pages]") {
  LagRig rig;
  rig.allocator.free(rig.written(512 * kMiB));
  CHECK(rig.makes(8 * kMiB) > 0);  // what was freed is not complete; from now on it is marked
  for (int i = 0; i < 40; ++i) {
    rig.pass(kLag / 20);
    rig.allocator.free(rig.written(4 * kMiB));
  }
  CHECK(rig.makes(400 * kMiB) == 0);
}

TEST_CASE("several points of a stream's work are remembered at once", "[engine][pages]") {
  LagRig rig;
  void* const first = rig.written(128 * kMiB);
  void* const second = rig.written(128 * kMiB);
  rig.allocator.free(first);
  CHECK(rig.makes(8 * kMiB) > 0);
  rig.pass(kLag / 2);
  rig.touch(rig.giver, second);
  rig.allocator.free(second);
  CHECK(rig.makes(8 * kMiB) > 0);
  rig.pass(kLag * 3 / 4);
  CHECK(rig.makes(100 * kMiB) == 0);  // the first alone
  rig.pass(kLag / 2);
  CHECK(rig.makes(100 * kMiB) == 0);
}

TEST_CASE("much that a stream frees while others look for memory is marked at once",
          "[engine][pages]") {
  LagRig rig;
  void* const large = rig.written(512 * kMiB);
  rig.allocator.free(rig.written(32 * kMiB));
  CHECK(rig.makes(8 * kMiB) > 0);  // it looks for memory
  rig.pass(kLag / 2);
  rig.touch(rig.giver, large);
  rig.allocator.free(large);
  rig.pass(kLag * 5 / 4);
  CHECK(rig.makes(400 * kMiB) == 0);
}

TEST_CASE("what a stream frees at once after its marks' time is known is marked at once",
          "[engine][pages]") {
  LagRig rig;
  void* const first = rig.written(256 * kMiB);
  void* const second = rig.written(256 * kMiB);
  rig.allocator.free(rig.written(32 * kMiB));
  CHECK(rig.makes(8 * kMiB) > 0);
  rig.pass(2 * kLag);
  CHECK(rig.makes(16 * kMiB) == 0);  // it is known how long a mark takes
  rig.allocator.free(first);
  rig.allocator.free(second);
  rig.pass(kLag * 5 / 4);
  CHECK(rig.makes(400 * kMiB) == 0);
}

TEST_CASE("what a stream frees that is used once is marked before anybody looks",
          "[engine][pages]") {
  LagRig rig;
  const Stream once = rig.stream();
  void* const block = rig.allocator.allocate(256 * kMiB, once);
  rig.touch(once, block);
  void* const kept = rig.allocator.allocate(kMiB, once);
  rig.allocator.free(block);
  for (int i = 0; i < 25; ++i) {  // the stream is never idle
    rig.sim().advanceHost(kLag / 20);
    rig.touch(once, kept);
  }
  CHECK(rig.makes(200 * kMiB) == 0);
  rig.allocator.free(kept);
}

TEST_CASE("a stream at which nobody looks is not asked where it is", "[engine][pages]") {
  LagRig rig;
  const std::uint64_t recorded = countOf(rig.sim(), Call::kRecordEvent);
  for (int i = 0; i < 40; ++i) rig.allocator.free(rig.written(64 * kMiB));
  CHECK(countOf(rig.sim(), Call::kRecordEvent) == recorded);
  CHECK(rig.makes(100 * kMiB) > 0);
  for (int i = 0; i < 1000; ++i) {
    rig.pass(kLag / 20);
    rig.allocator.free(rig.written(64 * kMiB));
  }
  const std::uint64_t after = countOf(rig.sim(), Call::kRecordEvent);
  CHECK(after > recorded);
  CHECK(after <= recorded + 500);  // one look of another's is soon forgotten
}

}  // namespace cistern::test
