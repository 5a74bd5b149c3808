// Finding devices and opening one: the doors of vendor.hpp, for the vendor of this compilation.
#include <memory>

#include <fmt/format.h>

#include "allocator/device/page_trial.hpp"
#include "allocator/device/vendor/vendor.hpp"
#include "allocator/device/vendor/vendor_device.hpp"

namespace cistern::GPU_NAMESPACE {
namespace {

DeviceError noDevice(Error error) {
  DeviceError described = failure(Call::kOpen, error);
  if (described.kind == ErrorKind::kNoDevice) described.detail = noDeviceText();
  return described;
}

DeviceError noSuchOrdinal(int ordinal, int count) {
  DeviceError error = failure(Call::kOpen, GPU(ErrorInvalidDevice));
  error.detail = fmt::format("device {}, but this machine has 0 to {}", ordinal, count - 1);
  return error;
}

/// Pre: facts->ordinal and facts->current are set, and current.
Error askFacts(Facts* facts) {
  Error error = deviceName(facts->ordinal, &facts->name);
  facts->virtual_memory = VirtualMemory::claimed(facts->ordinal);
  if (error == kSuccess) error = interprocessSupported(facts->ordinal, &facts->interprocess);
  if (error == kSuccess) error = memoryPoolsSupported(facts->ordinal, &facts->driver_pool);
  return error;
}

// A device that claims no virtual memory is not tried.
std::unique_ptr<Device> made(Facts facts) {
  const VirtualMemoryCapability claimed = facts.virtual_memory;
  if (!claimed.supported) return std::make_unique<VendorDevice>(std::move(facts));
  facts.virtual_memory = whatWorks(claimed, [facts](VirtualMemoryCapability& kind) mutable {
    const Error asked = withCurrent(facts.current, [&] {
      std::size_t granularity = 0;
      const Error error = VirtualMemory::granularity(facts.ordinal, kind, &granularity);
      kind.granularity = granularity;
      return error;
    });
    if (asked != kSuccess) return Status(failure(Call::kCreatePage, asked));
    facts.virtual_memory = kind;
    VendorDevice device(facts);
    return tryPage(device);
  });
  return std::make_unique<VendorDevice>(std::move(facts));
}

}  // namespace

Result<int> deviceCount() {
  int count = 0;
  const Error error = GPU(GetDeviceCount)(&count);
  if (error != kSuccess) return noDevice(error);
  if (count == 0) return noDevice(GPU(ErrorNoDevice));
  return count;
}

Result<std::unique_ptr<Device>> open(int ordinal) {
  const Result<int> count = deviceCount();
  if (!count) return count.error();
  if (ordinal < 0 || ordinal >= count.value()) return noSuchOrdinal(ordinal, count.value());
  Facts facts;
  facts.ordinal = ordinal;
  const Error found = currentFor(ordinal, &facts.current);
  if (found != kSuccess) {
    DeviceError error = failure(Call::kOpen, found);
    if (const std::string why = openDetail(); !why.empty()) error.detail = why;
    return error;
  }
  const Error error = withCurrent(facts.current, [&] { return askFacts(&facts); });
  if (error != kSuccess) return failure(Call::kOpen, error);
  return made(std::move(facts));
}

// It has the linker bring the switch into every program that opens a device.
constinit const Backend kTableEntry{
    .name = kBackend,
    .compiled_in = true,
    .simulated = false,
    .deviceCount = deviceCount,
    .open = open,
    .deviceSwitch = deviceSwitch,
    .runtime = runtimeText,
};

}  // namespace cistern::GPU_NAMESPACE
