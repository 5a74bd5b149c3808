// Addresses and pages apart from each other. The vendor's calls are in struct VirtualMemory of its
// alias header; a device without them answers kNotSupported by itself.
#include <new>

#include <fcntl.h>

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
  const Error error = onDevice(
      [&] { return VirtualMemory::create(facts_.ordinal, facts_.virtual_memory, bytes, &page); });
  return outcome(Call::kCreatePage, error, page);
}

Result<Page> VendorDevice::createHostPage(HostPages kind, std::size_t bytes) {
  Page page;
  const Error error =
      onDevice([&] { return VirtualMemory::createHost(facts_.ordinal, kind, bytes, &page); });
  return outcome(Call::kCreateHostPage, error, page);
}

// Two threads may try at once: both find the same.
HostPages VendorDevice::hostPages() {
  HostPages kind = host_pages_.load(std::memory_order_relaxed);
  if (kind != HostPages::kUntried) return kind;
  const std::uint64_t bytes = facts_.virtual_memory.granularity;
  kind = hostPagesThatWork([&](HostPages tried) {
    return tryMappingOf(*this, bytes, [&] { return createHostPage(tried, bytes); });
  });
  if (kind != HostPages::kUntried) host_pages_.store(kind, std::memory_order_relaxed);
  return kind;
}

Result<Page> VendorDevice::doCreateHostPage(std::size_t bytes) {
  const auto refused = [] { return failure(Call::kCreateHostPage, GPU(ErrorNotSupported)); };
  if (!facts_.virtual_memory.host_pages) return refused();
  const HostPages kind = hostPages();
  if (kind == HostPages::kUntried)
    return failure(Call::kCreateHostPage, GPU(ErrorMemoryAllocation));
  if (kind == HostPages::kNone) return refused();
  return createHostPage(kind, bytes);
}

Status VendorDevice::doReleasePage(Page page) {
  return outcome(Call::kReleasePage, onDevice([&] { return VirtualMemory::release(page); }));
}

Result<int> VendorDevice::doExportPage(Page page) {
  int descriptor = -1;
  const Error error = onDevice([&] { return VirtualMemory::exportPage(page, &descriptor); });
  if (error != kSuccess) return failure(Call::kExportPage, error);
  (void)fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return descriptor;
}

Result<Page> VendorDevice::doImportPage(int descriptor) {
  Page page;
  const Error error = onDevice([&] { return VirtualMemory::importPage(descriptor, &page); });
  return outcome(Call::kImportPage, error, page);
}

Result<FabricHandle> VendorDevice::doExportToFabric(Page page) {
  FabricHandle handle;
  const Error error = onDevice([&] { return VirtualMemory::exportToFabric(page, &handle); });
  return outcome(Call::kExportPage, error, handle);
}

Result<Page> VendorDevice::doImportFromFabric(const FabricHandle& handle) {
  Page page;
  const Error error = onDevice([&] { return VirtualMemory::importFromFabric(handle, &page); });
  return outcome(Call::kImportPage, error, page);
}

// ---- Mappings, and who may use them ------------------------------------------------------------
// Mappings are noted under a lock that also covers the driver's calls. So a peer that is admitted
// meanwhile finds a mapping here, or the mapping finds the peer.

Status VendorDevice::doMap(Address address, std::size_t bytes, Page page) {
  const MutexLock lock(access_mutex_);
  try {
    if (!mapped_.try_emplace(address, Mapped{bytes, false}).second)
      return failure(Call::kMap, GPU(ErrorInvalidValue));
  } catch (const std::bad_alloc&) {
    return failure(Call::kMap, GPU(ErrorMemoryAllocation));
  }
  const Error error = onDevice([&] { return VirtualMemory::map(address, bytes, page); });
  if (error != kSuccess) mapped_.erase(address);
  return outcome(Call::kMap, error);
}

Status VendorDevice::doSetAccess(Address address, std::size_t bytes) {
  const MutexLock lock(access_mutex_);
  const Error error = onDevice([&] {
    access_mutex_.assertHeld();
    return VirtualMemory::setAccess(address, bytes, admitted_.data(), admitted_.size());
  });
  if (error != kSuccess) return failure(Call::kSetAccess, error);
  const auto end = mapped_.lower_bound(address + bytes);
  for (auto it = mapped_.lower_bound(address); it != end; ++it) it->second.accessible = true;
  return {};
}

Status VendorDevice::doUnmap(Address address, std::size_t bytes) {
  const MutexLock lock(access_mutex_);
  const Error error = onDevice([&] {
    access_mutex_.assertHeld();
    return VirtualMemory::kUnmapsSeveral ? VirtualMemory::unmap(address, bytes)
                                         : unmapEach(address, bytes);
  });
  if (error != kSuccess) return failure(Call::kUnmap, error);
  mapped_.erase(mapped_.lower_bound(address), mapped_.lower_bound(address + bytes));
  return {};
}

// Refuses, before the first, what is no row of whole pages that are there.
Error VendorDevice::unmapEach(Address address, std::size_t bytes) {
  const auto first = mapped_.lower_bound(address), end = mapped_.lower_bound(address + bytes);
  Address next = address;
  for (auto it = first; it != end && it->first == next && isThere(it->first, it->second); ++it)
    next += it->second.bytes;
  if (next != address + bytes) return GPU(ErrorInvalidValue);
  for (auto it = first; it != end; it = mapped_.erase(it)) {
    const Error error = VirtualMemory::unmap(it->first, it->second.bytes);
    if (error != kSuccess) return error;
  }
  return kSuccess;
}

// The runtime may have failed to map it and not said so; only a mapping can be given access.
bool VendorDevice::isThere(Address address, const Mapped& mapped) {
  if (mapped.accessible) return true;
  const Error error =
      VirtualMemory::setAccess(address, mapped.bytes, admitted_.data(), admitted_.size());
  forget(error);
  return error == kSuccess;
}

Status VendorDevice::doAdmitPeer(int peer_ordinal) {
  if (peer_ordinal == facts_.ordinal) return {};
  try {
    return outcome(Call::kAdmitPeer, admit(peer_ordinal));
  } catch (const std::bad_alloc&) {
    return failure(Call::kAdmitPeer, GPU(ErrorMemoryAllocation));
  }
}

// malloc's memory is opened from the peer's side, for good, also if the program has done so. Each
// mapping is opened from this device's side.
Error VendorDevice::admit(int peer_ordinal) {
  Current peer{};
  Error error = currentFor(peer_ordinal, &peer);
  if (error == kSuccess) error = withCurrent(peer, [&] { return openToCurrent(facts_.ordinal); });
  if (error == GPU(ErrorPeerAccessAlreadyEnabled)) {
    forget(error);
    error = kSuccess;
  }
  if (error != kSuccess) return error;
  const VirtualMemory::Access access = VirtualMemory::readAndWrite(peer_ordinal);
  const MutexLock lock(access_mutex_);
  for (const VirtualMemory::Access& known : admitted_) {
    if (known.location.id == peer_ordinal) return kSuccess;
  }
  admitted_.reserve(admitted_.size() + 1);
  for (const auto& [address, mapped] : mapped_) {
    if (!mapped.accessible) continue;
    error = onDevice([&, at = address, bytes = mapped.bytes] {
      return VirtualMemory::setAccess(at, bytes, &access, 1);
    });
    if (error != kSuccess) return error;
  }
  admitted_.push_back(access);
  return kSuccess;
}

}  // namespace cistern::GPU_NAMESPACE
