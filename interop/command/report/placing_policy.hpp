// Policy cistern, which also tells where it puts each block and which memory it takes for them.
#pragma once

#include <cstdint>
#include <vector>

#include "cistern/allocator.hpp"
#include "interop/command/replay/policy.hpp"

namespace cistern::command {

class PlacingPolicy final : public Policy {
 public:
  PlacingPolicy(Device& device, const Options& options) : allocator_(device, options) {
    allocator_.recordMemoryEvents(true);
  }

  void* allocate(std::size_t bytes, Stream stream) override {
    void* const pointer = allocator_.allocate(bytes, stream);
    addresses_.push_back(toAddress(pointer));
    return pointer;
  }
  void free(const Held& block) override { allocator_.free(block.pointer); }
  ReservedBytes reserved() const override {
    const StatValue bytes = allocator_.memoryStats()[Stat::kReservedBytes];
    return {std::uint64_t(bytes.current), std::uint64_t(bytes.peak)};
  }

  /// How many requests found no free block at hand: memory changes with such a request alone.
  std::uint64_t misses() const { return allocator_.misses(); }
  /// The changes to the memory since the last call, in order.
  std::vector<MemoryEvent> takeChanges() { return allocator_.takeMemoryEvents(); }
  /// The address of each served request, in order; 0 for 0 bytes.
  const std::vector<std::uint64_t>& addresses() const { return addresses_; }

 private:
  CachingAllocator allocator_;
  std::vector<std::uint64_t> addresses_;
};

}  // namespace cistern::command
