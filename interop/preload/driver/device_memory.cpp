// Memory, pages and addresses of a context's device. See driver_device.hpp.
#include <algorithm>

#include "allocator/base/process.hpp"
#include "allocator/device/vendor/error_kind.hpp"
#include "interop/preload/driver/driver_device.hpp"
#include "interop/preload/record/ledger.hpp"

namespace cistern::preload {
namespace {

CUmemAllocationProp pageProperties(int ordinal, bool rdma) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = ordinal;
  properties.allocFlags.gpuDirectRDMACapable = rdma ? 1 : 0;
  return properties;
}

}  // namespace

DriverDevice::DriverDevice(const Functions& driver, ContextOrder& order, Captures& captures,
                           const std::atomic<Reuse>& reuse)
    : driver_(driver), order_(order), captures_(captures), reuse_(reuse) {
  findOut();
  const MutexLock lock(mutex_);
  admitted_ = {ordinal_};
}

DriverDevice::~DriverDevice() = default;

void DriverDevice::findOut() {
  CUdevice device = 0;
  outcome(Call::kOpen, driver_.cuCtxGetDevice(&device)).orThrow();
  ordinal_ = device;  // the driver numbers devices from 0
  char name[128] = {};
  outcome(Call::kOpen, driver_.cuDeviceGetName(name, sizeof name, device)).orThrow();
  name_ = name;
  const auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    return driver_.cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS && value != 0;
  };
  if (!attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)) return;
  rdma_ = attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
  std::size_t granularity = 0;
  const CUmemAllocationProp wanted = pageProperties(ordinal_, rdma_);
  const CUresult asked = driver_.cuMemGetAllocationGranularity(&granularity, &wanted,
                                                               CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  virtual_memory_ = {asked == CUDA_SUCCESS && granularity > 0, granularity};
}

void DriverDevice::took(std::uint64_t bytes) noexcept {
  reserved_.fetch_add(bytes, std::memory_order_relaxed);
  addTo(record().reserved, record().reserved_peak, bytes);
}

void DriverDevice::gaveBack(std::uint64_t bytes) noexcept {
  reserved_.fetch_sub(bytes, std::memory_order_relaxed);
  takeFrom(record().reserved, bytes);
}

// ---- Memory with an address ---------------------------------------------------------------------

Result<Address> DriverDevice::doMalloc(std::size_t bytes) {
  CUdeviceptr address = 0;
  const CUresult result = inContext([&] { return driver_.cuMemAlloc_v2(&address, bytes); });
  if (result != CUDA_SUCCESS) return failure(Call::kMalloc, result);
  const MutexLock lock(mutex_);
  sizes_[address] = bytes;
  took(bytes);
  return Address{address};
}

Status DriverDevice::doFree(Address address) {
  const CUresult result =
      gone_ ? CUDA_SUCCESS : inContext([&] { return driver_.cuMemFree_v2(address); });
  if (result != CUDA_SUCCESS) return failure(Call::kFree, result);
  const MutexLock lock(mutex_);
  gaveBack(sizes_[address]);
  sizes_.erase(address);
  return {};
}

Result<MemoryInfo> DriverDevice::doMemoryInfo() {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  const CUresult result =
      inContext([&] { return driver_.cuMemGetInfo_v2(&free_bytes, &total_bytes); });
  return outcome(Call::kMemoryInfo, result, MemoryInfo{free_bytes, total_bytes});
}

// ---- Pages and addresses ------------------------------------------------------------------------

Result<Address> DriverDevice::doReserve(std::size_t bytes) {
  CUdeviceptr address = 0;
  const CUresult result =
      inContext([&] { return driver_.cuMemAddressReserve(&address, bytes, 0, 0, 0); });
  return outcome(Call::kReserve, result, Address{address});
}

Status DriverDevice::doFreeReservation(Address address, std::size_t bytes) {
  return outcome(Call::kFreeReservation,
                 inContext([&] { return driver_.cuMemAddressFree(address, bytes); }));
}

Result<Page> DriverDevice::doCreatePage(std::size_t bytes) {
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp wanted = pageProperties(ordinal_, rdma_);
  const CUresult result =
      inContext([&] { return driver_.cuMemCreate(&handle, bytes, &wanted, 0); });
  if (result != CUDA_SUCCESS) return failure(Call::kCreatePage, result);
  const MutexLock lock(mutex_);
  sizes_[handle] = bytes;
  took(bytes);
  return Page{handle};
}

Status DriverDevice::doReleasePage(Page page) {
  const CUresult result = inContext([&] { return driver_.cuMemRelease(page.raw); });
  if (result != CUDA_SUCCESS) return failure(Call::kReleasePage, result);
  const MutexLock lock(mutex_);
  gaveBack(sizes_[page.raw]);
  sizes_.erase(page.raw);
  return {};
}

Status DriverDevice::doMap(Address address, std::size_t bytes, Page page) {
  return outcome(Call::kMap,
                 inContext([&] { return driver_.cuMemMap(address, bytes, 0, page.raw, 0); }));
}

CUresult DriverDevice::allow(Address address, std::size_t bytes,
                             const std::vector<int>& ordinals) const {
  std::vector<CUmemAccessDesc> who(ordinals.size());
  for (std::size_t i = 0; i < who.size(); ++i) {
    who[i].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    who[i].location.id = ordinals[i];
    who[i].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }
  return inContext([&] { return driver_.cuMemSetAccess(address, bytes, who.data(), who.size()); });
}

// Under the lock, so that a peer that is admitted meanwhile finds the range, or is found by it.
Status DriverDevice::doSetAccess(Address address, std::size_t bytes) {
  const MutexLock lock(mutex_);
  const CUresult result = allow(address, bytes, admitted_);
  if (result != CUDA_SUCCESS) return failure(Call::kSetAccess, result);
  mapped_[address] = bytes;
  return {};
}

Status DriverDevice::doUnmap(Address address, std::size_t bytes) {
  const MutexLock lock(mutex_);
  const CUresult result = inContext([&] { return driver_.cuMemUnmap(address, bytes); });
  if (result != CUDA_SUCCESS) return failure(Call::kUnmap, result);
  mapped_.erase(mapped_.lower_bound(address), mapped_.lower_bound(address + bytes));
  return {};
}

Status DriverDevice::admit(int peer_ordinal) {
  const MutexLock lock(mutex_);
  if (std::count(admitted_.begin(), admitted_.end(), peer_ordinal) != 0) return {};
  for (const auto& [address, bytes] : mapped_) {
    const CUresult result = allow(address, bytes, {peer_ordinal});
    if (result != CUDA_SUCCESS) return failure(Call::kSetAccess, result);
  }
  admitted_.push_back(peer_ordinal);
  return {};
}

Result<bool> DriverDevice::doCanAccessPeer(int peer_ordinal) {
  if (peer_ordinal == ordinal_) return true;
  int can = 0;
  const CUresult result = driver_.cuDeviceCanAccessPeer(&can, ordinal_, peer_ordinal);
  return outcome(Call::kCanAccessPeer, result, can != 0);
}

// ---- Failures -----------------------------------------------------------------------------------

DeviceError DriverDevice::failure(Call call, CUresult result) const {
  const char* name = nullptr;
  if (driver_.cuGetErrorName(result, &name) != CUDA_SUCCESS) name = "an unknown error";
  return {call, errorKind(int(result)), int(result), name, {}};
}

Status DriverDevice::outcome(Call call, CUresult result) const {
  if (result != CUDA_SUCCESS) return failure(call, result);
  return {};
}

}  // namespace cistern::preload
