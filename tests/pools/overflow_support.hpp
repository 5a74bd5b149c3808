// What the tests of overflow share.
#pragma once

#include <utility>

#include "tests/pools/pools_support.hpp"

namespace cistern::test {

inline sim::SimConfig overflowing(std::uint64_t device, std::uint64_t host,
                                  std::uint64_t lag_ns = 0) {
  sim::SimConfig config = simOf(device, lag_ns);
  config.host_page_capacity = host;
  return config;
}

/// A small device, a host with room, and overflow on.
struct OverflowRig : PoolRig {
  explicit OverflowRig(std::uint64_t device = 64 * kMiB, std::uint64_t overflow = 512 * kMiB,
                       std::uint64_t host = kGiB, std::uint64_t lag_ns = 0)
      : PoolRig("", overflowing(device, host, lag_ns)), host_bytes(host) {
    allocator.setOverflow(overflow);
  }

  bool onHost(const void* block) { return allocator.locationOf(block) == Location::kHost; }
  bool onDevice(const void* block) { return !onHost(block); }
  std::uint64_t inHostNow() { return host_bytes - sim().hostPageBytesLeft(); }
  /// A callback that frees the block at the first shortage. Pre: `held` lives as long.
  HookId givesUp(void*& held) {
    return allocator.registerReclaimCallback([this, &held](const MemoryShortage&) {
      if (held == nullptr) return false;
      free(std::exchange(held, nullptr));
      return true;
    });
  }
  /// A block with a pattern in it.
  void* filled(std::size_t bytes, Stream s, std::uint32_t seed) {
    void* const block = allocate(bytes, s);
    work.fill(s, toAddress(block), bytes, seed);
    return block;
  }
  /// How many words of the block are not the pattern's.
  std::uint64_t wrong(void* block, std::size_t bytes, Stream s, std::uint32_t seed) {
    const std::uint64_t before = work.mismatches();
    work.verify(s, toAddress(block), bytes, seed);
    return work.mismatches() - before;
  }

  const std::uint64_t host_bytes;
};

}  // namespace cistern::test
