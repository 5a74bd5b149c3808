// The host is short of memory for what a verb asks for, at times.
#pragma once

#include <atomic>
#include <cstdint>
#include <new>
#include <optional>

#include "tests/support/host_memory/host_memory.hpp"

namespace cistern::storm {

#if defined(CISTERN_COUNTS_HOST_MEMORY)
/// While it lives, each second request of the calling thread for host memory fails. Counts them.
class HostFailures {
 public:
  HostFailures(bool fails, std::atomic<std::uint64_t>& count) {
    if (!fails) return;
    at_.emplace([this, &count] {
      if (++asked_ % 2 == 0) return;
      count.fetch_add(1, std::memory_order_relaxed);
      throw std::bad_alloc();
    });
  }

 private:
  std::uint64_t asked_ = 0;
  std::optional<test::AtHostAllocations> at_;
};
#else
// The address sanitizer has a new of its own.
struct HostFailures {
  HostFailures(bool, std::atomic<std::uint64_t>&) {}
};
#endif

}  // namespace cistern::storm
