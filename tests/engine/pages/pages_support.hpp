// What the tests of the pages backing share.
#pragma once

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "tests/engine/engine_support.hpp"

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

/// Whether it comes true while other threads run.
template <class Condition>
bool eventually(Condition condition) {
  for (int i = 0; i < 10'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return condition();
}

/// All of it is as it should be while nothing is under way.
inline void checkAtRest(SimRig& rig) {
  rig.allocator.audit();
  CHECK(std::uint64_t(reservedOf(rig.allocator)) == takenOf(rig.sim()));
}

}  // namespace cistern::test
