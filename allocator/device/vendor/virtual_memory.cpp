// Addresses and pages apart from each other. The vendor's calls are in struct VirtualMemory of its
// alias header; a device without them answers kNotSupported by itself.
#include "allocator/device/vendor/vendor_device.hpp"

namespace cistern::GPU_NAMESPACE {

Result<Address> VendorDevice::doReserve(std::size_t bytes) {
  Address address = 0;
  const Error error = onDevice([&] { return VirtualMemory::reserve(bytes, &address); });
  return outcome(Call::kReserve, error, address);
}

Status VendorDevice::doFreeReservation(Address address, std::size_t bytes) {
  return outcome(Call::kFreeReservation,
                 onDevice([&] { return VirtualMemory::freeReservation(address, bytes); }));
}

Result<Page> VendorDevice::doCreatePage(std::size_t bytes) {
  Page page;
  const Error error = onDevice([&] { return VirtualMemory::create(facts_.ordinal, bytes, &page); });
  return outcome(Call::kCreatePage, error, page);
}

Status VendorDevice::doReleasePage(Page page) {
  return outcome(Call::kReleasePage, onDevice([&] { return VirtualMemory::release(page); }));
}

Status VendorDevice::doMap(Address address, std::size_t bytes, Page page) {
  return outcome(Call::kMap, onDevice([&] { return VirtualMemory::map(address, bytes, page); }));
}

Status VendorDevice::doSetAccess(Address address, std::size_t bytes) {
  return outcome(Call::kSetAccess, onDevice([&] {
                   return VirtualMemory::setAccess(facts_.ordinal, address, bytes);
                 }));
}

Status VendorDevice::doUnmap(Address address, std::size_t bytes) {
  return outcome(Call::kUnmap, onDevice([&] { return VirtualMemory::unmap(address, bytes); }));
}

}  // namespace cistern::GPU_NAMESPACE
