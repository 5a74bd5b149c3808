// The caching allocator as a policy; which rules it follows is its maker's choice.
#pragma once

#include "cistern/allocator.hpp"
#include "interop/command/replay/policy.hpp"

namespace cistern::command {

class EnginePolicy final : public Policy {
 public:
  EnginePolicy(Device& device, const Options& options, std::optional<std::uint64_t> capacity)
      : allocator_(device, options) {
    if (capacity && *capacity < allocator_.limit()) allocator_.setLimit(*capacity);
  }

  void* allocate(std::size_t bytes, Stream stream) override {
    return allocator_.allocate(bytes, stream);
  }
  void free(const Held& block) override { allocator_.free(block.pointer); }
  ReservedBytes reserved() const override {
    const StatValue bytes = allocator_.memoryStats()[Stat::kReservedBytes];
    return {std::uint64_t(bytes.current), std::uint64_t(bytes.peak)};
  }
  std::uint64_t hostBytes() const override { return allocator_.memoryStats().host_bytes; }
  PageCounts pageCounts() const override { return allocator_.memoryStats().pages; }

 private:
  CachingAllocator allocator_;
};

}  // namespace cistern::command
