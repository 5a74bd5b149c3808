// Misses of a host that is short of memory.
#include "tests/support/host_memory/host_memory.hpp"

#include <new>

#include "tests/engine/pages/pages_support.hpp"

// The audits of the audit build need host memory by themselves.
#if defined(CISTERN_COUNTS_HOST_MEMORY) && !defined(CISTERN_AUDIT_BUILD)

namespace cistern::test {
namespace {

/// A program of whose memory 16 MiB, made in its second round, are parked beside the rest. Two
/// small blocks fill a page; the next is a miss, which has to map one, and has no use for what is
/// parked.
struct ParkedPages {
  ParkedPages() {
    round(0);
    round(16 * kMiB);
    for (int i = 0; i < 2; ++i) small.push_back(rig.allocator.allocate(kMiB, stream));
    REQUIRE(parked() > mib(8));
  }
  void round(std::size_t more) {
    void* low = rig.allocator.allocate(256 * kMiB, stream);
    void* held = rig.allocator.allocate(2 * kMiB, stream);
    void* high = rig.allocator.allocate(256 * kMiB, stream);
    rig.allocator.free(low);
    rig.allocator.free(high);
    void* both = rig.allocator.allocate(512 * kMiB, stream);
    void* last = rig.allocator.allocate(more, stream);
    for (void* block : {both, held, last}) rig.allocator.free(block);
  }
  /// A small block; null when the host has refused it memory. It refuses the n-th request,
  /// counted from when the pages are mapped, and says so in `refused`.
  void* missWithout(std::uint64_t nth, bool& refused) {
    const std::uint64_t before = countOf(rig.sim(), Call::kSetAccess);
    std::uint64_t requests = 0;
    refused = false;
    const AtHostAllocations refusal([&] {
      if (countOf(rig.sim(), Call::kSetAccess) == before || ++requests != nth) return;
      refused = true;
      throw std::bad_alloc();
    });
    try {
      return rig.allocator.allocate(kMiB, stream);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }
  /// How much is parked: reserved, but neither in use nor free.
  std::int64_t parked() {
    const MemoryStats stats = rig.allocator.memoryStats();
    return stats[Stat::kReservedBytes].current - stats[Stat::kActiveBytes].current -
           stats[Stat::kInactiveSplitBytes].current;
  }

  SimRig rig{"recycle:eager,background_thread:false", simOf(4 * kGiB, 1'000'000)};
  Stream stream = rig.stream();
  std::vector<void*> small;
};

}  // namespace

TEST_CASE(
    "a miss that the host refuses memory once its pages are mapped is served, or changes nothing",
    "[engine][pages]") {
  int served = 0, left_free = 0;
  bool refused = true;
  for (std::uint64_t nth = 1; refused; ++nth) {
    INFO("request " << nth << " for host memory");
    ParkedPages t;
    const std::int64_t reserved = reservedOf(t.rig.allocator);
    void* block = t.missWithout(nth, refused);
    t.rig.allocator.audit();
    CHECK(nowOf(t.rig.allocator, Stat::kAllocation) == (block ? 3 : 2));
    if (block == nullptr) CHECK(reservedOf(t.rig.allocator) == reserved);
    checkAtRest(t.rig);
    if (block != nullptr) {
      // What it had no use for is parked again, unless that was what there was no memory for.
      ++served;
      left_free += t.parked() == 0 ? 1 : 0;
      t.rig.touch(t.stream, block);
    }
    t.small.push_back(block);
    for (void* small : t.small) t.rig.allocator.free(small);
    t.rig.sim().synchronizeDevice().orThrow();
    t.rig.allocator.emptyCache();
    CHECK(takenOf(t.rig.sim()) == 0);
  }
  UNSCOPED_INFO("served " << served << ", left free " << left_free);
  CHECK(left_free > 0);
  CHECK(left_free < served);  // without a refusal nothing is
}

}  // namespace cistern::test

#endif
