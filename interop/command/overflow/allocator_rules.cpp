// The rules of the caching allocator with overflow on, as a program would use it: as blocks come,
// and with a settle between its steps.
#include <set>

#include "cistern/allocator.hpp"
#include "interop/command/overflow/overflow_policy.hpp"

namespace cistern::command {
namespace {

class AsTheyCome : public OverflowPolicy {
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

 protected:
  CachingAllocator allocator_;
};

class Settled final : public AsTheyCome {
 public:
  using AsTheyCome::AsTheyCome;

  void* allocate(std::size_t bytes, Stream stream) override {
    streams_.insert(stream);
    return AsTheyCome::allocate(bytes, stream);
  }
  std::uint64_t settle() override {
    std::uint64_t moved = 0;
    for (const Stream stream : streams_) {
      const SettleReport report = allocator_.settle(stream);
      moved += report.to_host + report.to_device;
    }
    return moved;
  }

 private:
  std::set<Stream> streams_;
};

}  // namespace

std::unique_ptr<OverflowPolicy> makeAsTheyCome(Device& device, const Options& options) {
  return std::make_unique<AsTheyCome>(device, options);
}
std::unique_ptr<OverflowPolicy> makeSettled(Device& device, const Options& options) {
  return std::make_unique<Settled>(device, options);
}

}  // namespace cistern::command
