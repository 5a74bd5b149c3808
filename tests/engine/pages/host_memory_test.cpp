// Misses of a host that is short of memory.
#include "tests/support/host_memory/host_memory.hpp"

#include <new>

#include "tests/engine/pages/pages_support.hpp"

// The audits of the audit build need host memory by themselves.
#if defined(CISTERN_COUNTS_HOST_MEMORY) && !defined(CISTERN_AUDIT_BUILD)

namespace cistern::test {
namespace {

/// Two small blocks fill a page; the next is a miss, which has to map one.
struct FullPage {
  FullPage() {
    rig.allocator.free(rig.allocator.allocate(256 * kMiB, stream));
    for (int i = 0; i < 2; ++i) small.push_back(rig.allocator.allocate(kMiB, stream));
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

  SimRig rig{"recycle:eager,background_thread:false", simOf(4 * kGiB, 1'000'000)};
  Stream stream = rig.stream();
  std::vector<void*> small;
};

}  // namespace

TEST_CASE(
    "a miss that the host refuses memory once its pages are mapped is served, or changes nothing",
    "[engine][pages]") {
  int served = 0;
  bool refused = true;
  for (std::uint64_t nth = 1; refused; ++nth) {
    INFO("request " << nth << " for host memory");
    FullPage t;
    const std::int64_t reserved = reservedOf(t.rig.allocator);
    void* block = t.missWithout(nth, refused);
    t.rig.allocator.audit();
    CHECK(nowOf(t.rig.allocator, Stat::kAllocation) == (block ? 3 : 2));
    if (block == nullptr) CHECK(reservedOf(t.rig.allocator) == reserved);
    checkAtRest(t.rig);
    if (block != nullptr) {
      ++served;
      t.rig.touch(t.stream, block);
    }
    t.small.push_back(block);
    for (void* small : t.small) t.rig.allocator.free(small);
    t.rig.sim().synchronizeDevice().orThrow();
    t.rig.allocator.emptyCache();
    CHECK(takenOf(t.rig.sim()) == 0);
  }
  CHECK(served > 0);  // the last, which nothing was refused to
}

}  // namespace cistern::test

#endif
