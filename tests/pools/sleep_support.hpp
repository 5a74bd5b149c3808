// What the tests of sleep share: pools with blocks whose contents are checked.
#pragma once

#include <vector>

#include "tests/pools/pools_support.hpp"

namespace cistern::test {

/// A simulated device, and one pool on it.
struct SleepRig : PoolRig {
  explicit SleepRig(sim::SimConfig config = simOf(kGiB), std::string_view conf = "")
      : PoolRig(conf, std::move(config)), pool(pools), s(stream()) {}

  MempoolId_t id() const { return pool.id(); }
  /// A block of the pool with a pattern in it.
  void* filled(std::size_t bytes, std::uint32_t seed) { return filled(bytes, seed, s); }
  void* filled(std::size_t bytes, std::uint32_t seed, Stream on) {
    void* const block = pool.allocate(bytes, on);
    work.fill(on, toAddress(block), bytes, seed);
    return block;
  }
  /// How many words of the block are not the pattern's.
  std::uint64_t wrong(void* block, std::size_t bytes, std::uint32_t seed) {
    const std::uint64_t before = work.mismatches();
    work.verify(s, toAddress(block), bytes, seed);
    return work.mismatches() - before;
  }
  std::uint64_t taken() { return takenOf(sim()); }
  void audit() {
    allocator.audit();
    sim().audit();
  }

  MemPool pool;
  Stream s;
};

}  // namespace cistern::test
