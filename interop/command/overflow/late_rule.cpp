// Rule "late": a block goes to host memory when the device has no room for it as it comes. No block
// moves. Room on the device that is free again serves the next block first.
#include "cistern/allocator.hpp"
#include "cistern/pool.hpp"
#include "interop/command/overflow/overflow_policy.hpp"

namespace cistern::command {
namespace {

MemPoolOptions inHostMemory() {
  MemPoolOptions options;
  options.location = Location::kHost;
  return options;
}

class LatePolicy final : public OverflowPolicy {
 public:
  LatePolicy(Device& device, const Options& options) : allocator_(device, options) {}

  void* allocate(std::size_t bytes, Stream stream) override try {
    return allocator_.allocate(bytes, stream);
  } catch (const OutOfMemory&) {
    return host_.allocate(bytes, stream);
  }
  void free(const Held& block) override { allocator_.free(block.pointer); }
  Location locationOf(const void* block) const override { return allocator_.locationOf(block); }
  ReservedBytes reserved() const override {
    const StatValue bytes = allocator_.memoryStats()[Stat::kReservedBytes];
    return {std::uint64_t(bytes.current), std::uint64_t(bytes.peak)};
  }

 private:
  CachingAllocator allocator_;
  Pools pools_{allocator_};
  MemPool host_{pools_, inHostMemory()};
};

}  // namespace

std::unique_ptr<OverflowPolicy> makeLate(Device& device, const Options& options) {
  return std::make_unique<LatePolicy>(device, options);
}

}  // namespace cistern::command
