// Finding devices and opening one: the doors of vendor.hpp, for the vendor that is being compiled.
#include <memory>

#include <fmt/format.h>

#include "allocator/base/current_device.hpp"
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

// Tried, with one page: the driver calls a device able where the machine has no channel to a
// fabric, and some drivers make such a page there and refuse only to name it.
bool onFabric(int ordinal) {
  if (!VirtualMemory::fabricKnown(ordinal)) return false;
  const VirtualMemoryCapability both{true, 0, true, true};
  std::size_t bytes = 0;
  Page page, same;
  if (VirtualMemory::granularity(ordinal, both, &bytes) != kSuccess) return false;
  if (VirtualMemory::create(ordinal, both, bytes, &page) != kSuccess) return false;
  FabricHandle handle;
  const bool well = VirtualMemory::exportToFabric(page, &handle) == kSuccess &&
                    VirtualMemory::importFromFabric(handle, &same) == kSuccess &&
                    VirtualMemory::release(same) == kSuccess;
  return VirtualMemory::release(page) == kSuccess && well;
}

Error askVirtualMemory(Facts* facts) {
  int supported = 0;
  const Error asked = VirtualMemory::supported(facts->ordinal, &supported);
  if (asked != kSuccess || supported == 0) return asked;
  int exportable = 0;
  Error error = VirtualMemory::exportable(facts->ordinal, &exportable);
  VirtualMemoryCapability& pages = facts->virtual_memory;
  pages.exportable = exportable != 0;
  pages.fabric = pages.exportable && onFabric(facts->ordinal);
  std::size_t granularity = 0;
  if (error == kSuccess) error = VirtualMemory::granularity(facts->ordinal, pages, &granularity);
  pages.supported = granularity > 0;
  pages.granularity = granularity;
  return error;
}

/// Pre: facts->ordinal and facts->current are set, and current.
Error askFacts(Facts* facts) {
  Error error = deviceName(facts->ordinal, &facts->name);
  if (error == kSuccess) error = askVirtualMemory(facts);
  if (error == kSuccess) error = interprocessSupported(facts->ordinal, &facts->interprocess);
  if (error == kSuccess) error = memoryPoolsSupported(facts->ordinal, &facts->driver_pool);
  return error;
}

}  // namespace

bool compiledIn() { return true; }

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
  addDeviceSwitch(
      deviceSwitch());  // also has the linker bring it into every program that opens one
  return std::unique_ptr<Device>(std::make_unique<VendorDevice>(std::move(facts)));
}

}  // namespace cistern::GPU_NAMESPACE
