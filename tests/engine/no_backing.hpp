// A backing for heaps whose memory is made up: it has nothing, and gives nothing.
#pragma once

#include "allocator/engine/backing/memory_backing.hpp"
#include "allocator/engine/heap/heap.hpp"

namespace cistern::test {

class NoBacking final : public MemoryBacking {
 public:
  explicit NoBacking(bool in_pages) : MemoryBacking(in_pages) {}

  std::uint64_t release(const std::vector<Heap*>&, std::uint64_t) override { return 0; }
  void pin(const Block&, std::uint32_t, Pins&) override {}
  bool pinned(const Block&) const override { return false; }
  std::unique_lock<Mutex> holdStill() const override { return {}; }
  std::uint64_t leastGrowth(const Request&) const override { return 0; }
};

}  // namespace cistern::test
