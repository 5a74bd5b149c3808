// The rule of the caching allocator with overflow on, as a program would use it: as blocks come.
#include "cistern/allocator.hpp"
#include "interop/command/overflow/overflow_policy.hpp"

namespace cistern::command {
namespace {

class AsTheyCome final : public OverflowPolicy {
 public:
  AsTheyCome(Device& device, const Options& options) : allocator_(device, options) {
    allocator_.setOverflow(device.hostPageBytesLeft());
  }

  void* allocate(std::size_t bytes, Stream stream) override {
    return allocator_.allocate(bytes, stream);
  }
  void free(const Held& block) override { allocator_.free(block.pointer); }
  std::uint64_t hostBytesIn(const void* block) const override {
    return allocator_.hostBytesIn(block);
  }
  ReservedBytes reserved() const override {
    const StatValue bytes = allocator_.memoryStats()[Stat::kReservedBytes];
    return {std::uint64_t(bytes.current), std::uint64_t(bytes.peak)};
  }

 private:
  CachingAllocator allocator_;
};

}  // namespace

std::unique_ptr<OverflowPolicy> makeAsTheyCome(Device& device, const Options& options) {
  return std::make_unique<AsTheyCome>(device, options);
}

}  // namespace cistern::command
