// Policy "async": the driver's own stream-ordered pool (cudaMallocAsync). It keeps all the memory
// that it has taken until the replay is over, as a program that wants speed configures it. It
// cannot be held to a capacity.
#include <fmt/format.h>

#include "interop/command/replay/policy.hpp"

namespace cistern::command {
namespace {

class AsyncPolicy final : public Policy {
 public:
  explicit AsyncPolicy(Device& device) : device_(device) {
    (void)device_.driverPool(true).orThrow();  // starts empty, and its peak from there
  }
  ~AsyncPolicy() override { (void)device_.driverPool(true); }

  void* allocate(std::size_t bytes, Stream stream) override {
    return bytes == 0 ? nullptr : toPointer(device_.mallocAsync(bytes, stream).orThrow());
  }

  void free(const Held& block) override {
    device_.freeAsync(toAddress(block.pointer), block.stream).orThrow();
  }

  ReservedBytes reserved() const override {
    const DriverPoolInfo pool = device_.driverPool(false).orThrow();
    return {pool.reserved_bytes, pool.reserved_peak};
  }

 private:
  Device& device_;
};

}  // namespace

std::unique_ptr<Policy> makeAsync(Device& device, const PolicySettings&) {
  return std::make_unique<AsyncPolicy>(device);
}

std::string asyncLacks(const Device& device) {
  if (device.driverPoolSupported()) return {};
  return fmt::format(
      "policy async needs a device whose driver has a pool of its own (cudaMallocAsync), and the "
      "{} ({}) has none",
      device.name(), device.backend());
}

}  // namespace cistern::command
