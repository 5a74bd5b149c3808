// What the tests of the pages backing share.
#pragma once

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "tests/engine/engine_support.hpp"
#include "tests/support/threads.hpp"

namespace cistern::test {

inline PageCounts pagesOf(const CachingAllocator& allocator) {
  return allocator.memoryStats().pages;
}

/// The calls that make, map, unmap and give back pages.
inline std::uint64_t mappingCalls(Device& device) {
  std::uint64_t calls = 0;
  for (Call call : {Call::kReserve, Call::kCreatePage, Call::kReleasePage, Call::kMap,
                    Call::kSetAccess, Call::kUnmap}) {
    calls += countOf(device, call);
  }
  return calls;
}

inline bool overlap(const void* a, std::uint64_t a_bytes, const void* b, std::uint64_t b_bytes) {
  return toAddress(a) < toAddress(b) + b_bytes && toAddress(b) < toAddress(a) + a_bytes;
}

/// All of it is as it should be while nothing is under way.
inline void checkAtRest(SimRig& rig) {
  rig.allocator.audit();
  CHECK(std::uint64_t(reservedOf(rig.allocator)) == takenOf(rig.sim()));
}

}  // namespace cistern::test
