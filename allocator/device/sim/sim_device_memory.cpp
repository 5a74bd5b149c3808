// The simulated device's memory calls: time and faults here, the rest in sim_memory.hpp.
#include <algorithm>
#include <new>

#include <fmt/format.h>

#include "allocator/device/sim/costs.hpp"
#include "allocator/device/sim/refusal.hpp"
#include "allocator/device/sim/sim_device.hpp"

namespace cistern::sim {

Result<Address> SimDevice::doMalloc(std::size_t bytes) {
  MutexLock lock(mutex_);
  if (Status in = enterUnsafe(Call::kMalloc, cost::malloc(bytes)); !in.ok()) return in.error();
  return memory_.malloc(bytes);
}

Status SimDevice::doFree(Address address) {
  MutexLock lock(mutex_);
  const std::uint64_t bytes = memory_.chargedFor(address);
  if (Status in = enterUnsafe(Call::kFree, cost::free(bytes)); !in.ok()) return in;
  if (bytes == 0) {
    return refusal(Call::kFree, Reason::kInvalidValue,
                   fmt::format("{:#x} is not what malloc returned", address));
  }
  if (Status waited = waitForAll(Call::kFree); !waited.ok()) return waited;
  detector_.forget(memory_.free(address));
  return {};
}

Result<MemoryInfo> SimDevice::doMemoryInfo() {
  MutexLock lock(mutex_);
  if (Status in = enter(Call::kMemoryInfo, cost::kMemoryInfo); !in.ok()) return in.error();
  return memory_.info();
}

// ---- Virtual memory ----------------------------------------------------------------------------

Result<Address> SimDevice::doReserve(std::size_t bytes) {
  MutexLock lock(mutex_);
  if (Status in = enterVirtual(Call::kReserve, cost::kReserve); !in.ok()) return in.error();
  return memory_.reserve(bytes);
}

Status SimDevice::doFreeReservation(Address address, std::size_t bytes) {
  MutexLock lock(mutex_);
  Status in = enterVirtual(Call::kFreeReservation, cost::kFreeReservation);
  return in.ok() ? memory_.freeReservation(address, bytes) : in;
}

Result<Page> SimDevice::doCreatePage(std::size_t bytes) {
  MutexLock lock(mutex_);
  if (Status in = enterVirtual(Call::kCreatePage, cost::createPage(bytes)); !in.ok()) {
    return in.error();
  }
  return memory_.createPage(bytes);
}

Result<Page> SimDevice::doCreateHostPage(std::size_t bytes) {
  MutexLock lock(mutex_);
  if (Status in = enterVirtual(Call::kCreateHostPage, cost::createHostPage(bytes)); !in.ok()) {
    return in.error();
  }
  return memory_.createHostPage(bytes);
}

std::uint64_t SimDevice::hostPageBytesLeft() const {
  MutexLock lock(mutex_);
  return memory_.hostLeft();
}

Status SimDevice::doReleasePage(Page page) {
  MutexLock lock(mutex_);
  const std::uint64_t bytes = memory_.heldBytes(page);
  const std::uint64_t cost =
      memory_.isHost(page) ? cost::releaseHostPage(bytes) : cost::releasePage(bytes);
  if (Status in = enterVirtual(Call::kReleasePage, cost); !in.ok()) return in;
  Status released = memory_.releasePage(page);
  forgetReturnedPages();
  return released;
}

Status SimDevice::doMap(Address address, std::size_t bytes, Page page) {
  MutexLock lock(mutex_);
  Status in = enterVirtual(Call::kMap, memory_.isHost(page) ? cost::kMapHost : cost::kMap);
  return in.ok() ? memory_.map(address, bytes, page) : in;
}

Status SimDevice::doSetAccess(Address address, std::size_t bytes) {
  MutexLock lock(mutex_);
  const auto views = memory_.viewCount(Call::kSetAccess, address, bytes);
  const std::size_t pages = views.ok() ? views.value() : 1;
  const std::uint64_t host = views.ok() ? memory_.hostBytesIn(address, pages) : 0;
  const std::uint64_t cost = cost::setAccess(pages, bytes) + cost::moreAccess(host);
  if (Status in = enterVirtual(Call::kSetAccess, cost); !in.ok()) return in;
  if (!views.ok()) return views.error();
  memory_.setAccess(address, pages);
  return {};
}

Status SimDevice::doUnmap(Address address, std::size_t bytes) {
  MutexLock lock(mutex_);
  const auto views = memory_.viewCount(Call::kUnmap, address, bytes);
  const std::size_t pages = views.ok() ? views.value() : 1;
  const std::uint64_t host = views.ok() ? memory_.hostBytesIn(address, pages) : 0;
  const std::uint64_t cost = cost::unmap(pages, bytes) + cost::moreUnmap(host);
  if (Status in = enterVirtual(Call::kUnmap, cost); !in.ok()) return in;
  if (!views.ok()) return views.error();
  detector_.unmap(address, memory_.viewsFrom(address, pages));
  memory_.unmap(address, pages);
  forgetReturnedPages();
  return {};
}

Result<int> SimDevice::doExportPage(Page page) {
  MutexLock lock(mutex_);
  if (Status in = enterVirtual(Call::kExportPage, cost::kExportPage); !in.ok()) return in.error();
  return memory_.exportPage(page);
}

Result<Page> SimDevice::doImportPage(int descriptor) {
  MutexLock lock(mutex_);
  if (Status in = enterVirtual(Call::kImportPage, cost::kImportPage); !in.ok()) return in.error();
  return memory_.importPage(descriptor);
}

Result<FabricHandle> SimDevice::doExportToFabric(Page page) {
  MutexLock lock(mutex_);
  if (Status in = enterVirtual(Call::kExportPage, cost::kExportPage); !in.ok()) return in.error();
  return memory_.exportToFabric(page);
}

Result<Page> SimDevice::doImportFromFabric(const FabricHandle& handle) {
  MutexLock lock(mutex_);
  if (Status in = enterVirtual(Call::kImportPage, cost::kImportPage); !in.ok()) return in.error();
  return memory_.importFromFabric(handle);
}

void SimDevice::forgetReturnedPages() {
  for (const std::uint64_t page : memory_.takeReturnedPages()) detector_.forget(page);
}

// ---- Pinned host memory, peers, the driver's pool ----------------------------------------------

Result<void*> SimDevice::doHostMalloc(std::size_t bytes) {
  MutexLock lock(mutex_);
  if (Status in = enterUnsafe(Call::kHostMalloc, cost::malloc(bytes)); !in.ok()) return in.error();
  if (bytes == 0) return refusal(Call::kHostMalloc, Reason::kInvalidValue, "0 bytes");
  if (bytes > config_.pinned_capacity - pinned_bytes_) {
    return refusal(Call::kHostMalloc, Reason::kOutOfMemory,
                   fmt::format("{} bytes asked, {} pinned of {}", bytes, pinned_bytes_,
                               config_.pinned_capacity));
  }
  std::unique_ptr<void, FreeHostPages> memory(
      ::operator new (bytes, std::align_val_t{kHostPage}, std::nothrow));
  if (memory == nullptr) return refusal(Call::kHostMalloc, Reason::kOutOfMemory);
  void* pointer = memory.get();
  host_memory_.emplace(pointer, Pinned{std::move(memory), bytes});
  pinned_bytes_ += bytes;
  return pointer;
}

Status SimDevice::doHostFree(void* pointer) {
  MutexLock lock(mutex_);
  if (Status in = enterUnsafe(Call::kHostFree, cost::free(0)); !in.ok()) return in;
  const auto it = host_memory_.find(pointer);
  if (it == host_memory_.end())
    return refusal(Call::kHostFree, Reason::kInvalidValue, "not what hostMalloc returned");
  if (Status waited = waitUntil(Call::kHostFree, it->second.busy_until); !waited.ok())
    return waited;
  pinned_bytes_ -= it->second.bytes;
  host_memory_.erase(it);
  return {};
}

std::uint64_t SimDevice::pinnableBytes() const {
  MutexLock lock(mutex_);
  return config_.pinned_capacity - pinned_bytes_;
}

Result<bool> SimDevice::doCanAccessPeer(int peer_ordinal) {
  MutexLock lock(mutex_);
  if (Status in = enter(Call::kCanAccessPeer, cost::kCanAccessPeer); !in.ok()) return in.error();
  return isPeer(peer_ordinal);
}

Status SimDevice::doAdmitPeer(int peer_ordinal) {
  MutexLock lock(mutex_);
  if (Status in = enter(Call::kAdmitPeer, cost::kAdmitPeer); !in.ok()) return in;
  if (peer_ordinal == config_.ordinal) return {};
  if (!isPeer(peer_ordinal) || peer_ordinal < 0 || peer_ordinal > 7) {
    return refusal(Call::kAdmitPeer, Reason::kNotSupported,
                   fmt::format("device {} cannot reach device {}", peer_ordinal, config_.ordinal));
  }
  memory_.admitPeer(peer_ordinal);
  return {};
}

bool SimDevice::isPeer(int ordinal) const {
  return std::find(config_.peers.begin(), config_.peers.end(), ordinal) != config_.peers.end();
}

Result<Address> SimDevice::doMallocAsync(std::size_t, Stream) {
  return refusal(Call::kMallocAsync, Reason::kNotSupported, "the driver's pool is not modelled");
}

Status SimDevice::doFreeAsync(Address, Stream) {
  return refusal(Call::kFreeAsync, Reason::kNotSupported, "the driver's pool is not modelled");
}

Result<DriverPoolInfo> SimDevice::doDriverPool(bool) {
  return refusal(Call::kDriverPool, Reason::kNotSupported, "the driver's pool is not modelled");
}

}  // namespace cistern::sim
