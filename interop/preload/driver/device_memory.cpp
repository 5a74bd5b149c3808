// Memory, pages and addresses of a context's device. See driver_device.hpp.
#include <algorithm>

#include <fcntl.h>

#include "allocator/base/process.hpp"
#include "allocator/device/page_trial.hpp"
#include "allocator/device/vendor/error_kind.hpp"
#include "interop/preload/driver/driver_device.hpp"
#include "interop/preload/record/ledger.hpp"

namespace cistern::preload::GPU_NAMESPACE {

DriverDevice::DriverDevice(const Functions& driver, ContextOrder& order, Captures& captures,
                           const std::atomic<Reuse>& reuse)
    : driver_(driver), order_(order), captures_(captures), reuse_(reuse) {
  findOut();
  tried_ = true;
}

DriverDevice::~DriverDevice() = default;

void DriverDevice::findOut() {
  int device = 0;
  outcome(Call::kOpen, driver_.currentDevice(&device)).orThrow();
  ordinal_ = device;  // the driver numbers devices from 0
  {
    const MutexLock lock(mutex_);
    admitted_ = {ordinal_};
  }
  char name[128] = {};
  outcome(Call::kOpen, driver_.deviceName(name, sizeof name, device)).orThrow();
  name_ = name;
  const VirtualMemoryCapability claimed = driver_.claimedPages(ordinal_);
  if (claimed.supported)
    virtual_memory_ = whatWorks(claimed, [this](auto& kind) { return tryKind(kind); });
}

Status DriverDevice::tryKind(VirtualMemoryCapability& kind) {
  std::size_t granularity = 0;
  const Code asked = driver_.granularity(&granularity, ordinal_, kind);
  if (asked != kSuccess) return failure(Call::kCreatePage, asked);
  kind.granularity = granularity;
  virtual_memory_ = kind;
  return tryPage(*this);
}

void DriverDevice::took(std::uint64_t which, const Taken& memory) {
  {
    const MutexLock lock(mutex_);
    taken_[which] = memory;
  }
  const bool host = memory.location == Location::kHost;
  (host ? host_reserved_ : reserved_).fetch_add(memory.bytes, std::memory_order_relaxed);
  addTo(record().reserved, record().reserved_peak, memory.bytes);
  if (host) addTo(record().host_reserved, record().host_reserved_peak, memory.bytes);
}

void DriverDevice::gaveBack(const Taken& memory) noexcept {
  const bool host = memory.location == Location::kHost;
  (host ? host_reserved_ : reserved_).fetch_sub(memory.bytes, std::memory_order_relaxed);
  takeFrom(record().reserved, memory.bytes);
  if (host) takeFrom(record().host_reserved, memory.bytes);
}

// The record goes first: as soon as the driver has it back, another thread may get the same address
// or handle, and record that.
template <class Free>
Status DriverDevice::giveBack(Call call, std::uint64_t which, Free free) {
  std::map<std::uint64_t, Taken>::node_type record;
  {
    const MutexLock lock(mutex_);
    record = taken_.extract(which);
  }
  const Code result = free();
  if (result == kSuccess) {
    if (!record.empty()) gaveBack(record.mapped());
    return {};
  }
  const MutexLock lock(mutex_);
  taken_.insert(std::move(record));
  return failure(call, result);
}

// ---- Memory with an address ---------------------------------------------------------------------

Result<Address> DriverDevice::doMalloc(std::size_t bytes) {
  Address address = 0;
  const Code result = grow([&] { return driver_.malloc(&address, bytes); });
  if (result != kSuccess) return failure(Call::kMalloc, result);
  took(address, {bytes});
  return Address{address};
}

Status DriverDevice::doFree(Address address) {
  return giveBack(Call::kFree, address, [&] {
    return gone_ ? kSuccess : inContext([&] { return driver_.free(address); });
  });
}

Result<MemoryInfo> DriverDevice::doMemoryInfo() {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  const Code result = inContext([&] { return driver_.memoryInfo(&free_bytes, &total_bytes); });
  return outcome(Call::kMemoryInfo, result, MemoryInfo{free_bytes, total_bytes});
}

// ---- Pages and addresses ------------------------------------------------------------------------

Result<Address> DriverDevice::doReserve(std::size_t bytes) {
  Address address = 0;
  const Code result = inContext([&] { return driver_.reserve(&address, bytes); });
  return outcome(Call::kReserve, result, Address{address});
}

Status DriverDevice::doFreeReservation(Address address, std::size_t bytes) {
  return outcome(Call::kFreeReservation,
                 inContext([&] { return driver_.freeReservation(address, bytes); }));
}

Result<Page> DriverDevice::doCreatePage(std::size_t bytes) {
  std::uint64_t handle = 0;
  const Code result =
      grow([&] { return driver_.createPage(&handle, bytes, ordinal_, virtual_memory_); });
  if (result != kSuccess) return failure(Call::kCreatePage, result);
  took(handle, {bytes});
  return Page{handle};
}

Status DriverDevice::doReleasePage(Page page) {
  return giveBack(Call::kReleasePage, page.raw,
                  [&] { return inContext([&] { return driver_.releasePage(page.raw); }); });
}

Result<int> DriverDevice::doExportPage(Page page) {
  int descriptor = -1;
  const Code result = inContext([&] { return driver_.exportPage(page.raw, &descriptor); });
  if (result == kSuccess) (void)fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return outcome(Call::kExportPage, result, descriptor);
}

// Its memory counts where it was made.
Result<Page> DriverDevice::doImportPage(int descriptor) {
  std::uint64_t handle = 0;
  const Code result = inContext([&] { return driver_.importPage(descriptor, &handle); });
  return outcome(Call::kImportPage, result, Page{handle});
}

Status DriverDevice::doMap(Address address, std::size_t bytes, Page page) {
  return outcome(Call::kMap, inContext([&] { return driver_.map(address, bytes, page.raw); }));
}

Code DriverDevice::allow(Address address, std::size_t bytes,
                         const std::vector<int>& ordinals) const {
  return inContext([&] { return driver_.setAccess(address, bytes, ordinals); });
}

// Under the lock, so that a peer that is admitted meanwhile finds the range, or is found by it.
Status DriverDevice::doSetAccess(Address address, std::size_t bytes) {
  const MutexLock lock(mutex_);
  const Code result = allow(address, bytes, admitted_);
  if (result != kSuccess) return failure(Call::kSetAccess, result);
  mapped_[address] = bytes;
  return {};
}

Status DriverDevice::doUnmap(Address address, std::size_t bytes) {
  const MutexLock lock(mutex_);
  const Code result = inContext([&] { return driver_.unmap(address, bytes); });
  if (result != kSuccess) return failure(Call::kUnmap, result);
  mapped_.erase(mapped_.lower_bound(address), mapped_.lower_bound(address + bytes));
  return {};
}

Status DriverDevice::admit(int peer_ordinal) {
  const MutexLock lock(mutex_);
  if (std::count(admitted_.begin(), admitted_.end(), peer_ordinal) != 0) return {};
  for (const auto& [address, bytes] : mapped_) {
    const Code result = allow(address, bytes, {peer_ordinal});
    if (result != kSuccess) return failure(Call::kSetAccess, result);
  }
  admitted_.push_back(peer_ordinal);
  return {};
}

Result<bool> DriverDevice::doCanAccessPeer(int peer_ordinal) {
  if (peer_ordinal == ordinal_) return true;
  int can = 0;
  const Code result = driver_.canAccessPeer(&can, ordinal_, peer_ordinal);
  return outcome(Call::kCanAccessPeer, result, can != 0);
}

// ---- Failures -----------------------------------------------------------------------------------

DeviceError DriverDevice::failure(Call call, Code result) const {
  return {call, errorKind(int(result)), int(result), driver_.errorName(result), {}};
}

Status DriverDevice::outcome(Call call, Code result) const {
  if (result != kSuccess) return failure(call, result);
  return {};
}

}  // namespace cistern::preload::GPU_NAMESPACE
