// The driver's stream-ordered pool, as a peer to measure against. It is a pool of our own, so that
// its figures are ours alone. It keeps its memory, as a caching allocator does.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "allocator/device/vendor/vendor_device.hpp"

namespace cistern::GPU_NAMESPACE {
namespace {

Error createPool(int ordinal, PoolHandle* pool) {
  PoolProperties properties{};
  properties.allocType = GPU(MemAllocationTypePinned);
  properties.location.type = GPU(MemLocationTypeDevice);
  properties.location.id = ordinal;
  const Error created = GPU(MemPoolCreate)(pool, &properties);
  if (created != kSuccess) return created;
  std::uint64_t keep = std::numeric_limits<std::uint64_t>::max();
  const Error set = GPU(MemPoolSetAttribute)(*pool, GPU(MemPoolAttrReleaseThreshold), &keep);
  if (set != kSuccess) (void)GPU(MemPoolDestroy)(*pool);  // `set` is what went wrong
  return set;
}

/// Frees count once the work before them is complete: wait, trim, then restart the peak.
Error resetPool(PoolHandle pool) {
  std::uint64_t zero = 0;
  if (const Error error = GPU(DeviceSynchronize)(); error != kSuccess) return error;
  if (const Error error = GPU(MemPoolTrimTo)(pool, 0); error != kSuccess) return error;
  return GPU(MemPoolSetAttribute)(pool, GPU(MemPoolAttrReservedMemHigh), &zero);
}

Error readPool(PoolHandle pool, DriverPoolInfo* info) {
  const PoolAttribute current = GPU(MemPoolAttrReservedMemCurrent);
  const PoolAttribute high = GPU(MemPoolAttrReservedMemHigh);
  const Error error = GPU(MemPoolGetAttribute)(pool, current, &info->reserved_bytes);
  return error != kSuccess ? error : GPU(MemPoolGetAttribute)(pool, high, &info->reserved_peak);
}

DeviceError noPool(Call call) {
  DeviceError error = failure(call, GPU(ErrorNotSupported));
  error.detail = "this device has no stream-ordered memory pools";
  return error;
}

}  // namespace

// At process exit the runtime may be gone; it then refuses, and the pool goes with the process.
VendorDevice::~VendorDevice() {
  if (!made_.isHere()) return;  // the pool is the parent's
  MutexLock lock(pool_mutex_);
  const PoolHandle pool = pool_;
  if (pool != nullptr) (void)onDevice([&] { return GPU(MemPoolDestroy)(pool); });
}

Error VendorDevice::driverPoolHandle(PoolHandle* pool) {
  MutexLock lock(pool_mutex_);
  if (pool_ == nullptr) {
    const Error error = createPool(facts_.ordinal, pool);
    if (error != kSuccess) return error;
    pool_ = *pool;
  }
  *pool = pool_;
  return kSuccess;
}

Result<Address> VendorDevice::doMallocAsync(std::size_t bytes, Stream stream) {
  if (!driverPoolSupported()) return noPool(Call::kMallocAsync);
  void* memory = nullptr;
  const Error error = onDevice([&] {
    PoolHandle pool = nullptr;
    const Error found = driverPoolHandle(&pool);
    if (found != kSuccess) return found;
    return GPU(MallocFromPoolAsync)(&memory, bytes, pool, handleOf(stream));
  });
  return outcome(Call::kMallocAsync, error, toAddress(memory));
}

// Without pools no address is one of a pool. HIP 5.2 would read what lies there.
Status VendorDevice::doFreeAsync(Address address, Stream stream) {
  if (!driverPoolSupported()) return noPool(Call::kFreeAsync);
  return outcome(Call::kFreeAsync,
                 onDevice([&] { return GPU(FreeAsync)(toPointer(address), handleOf(stream)); }));
}

Result<DriverPoolInfo> VendorDevice::doDriverPool(bool reset) {
  if (!driverPoolSupported()) return noPool(Call::kDriverPool);
  DriverPoolInfo info;
  const Error error = onDevice([&] {
    PoolHandle pool = nullptr;
    Error step = driverPoolHandle(&pool);
    if (step == kSuccess && reset) step = resetPool(pool);
    return step == kSuccess ? readPool(pool, &info) : step;
  });
  info.reserved_peak = std::max(info.reserved_peak, info.reserved_bytes);
  return outcome(Call::kDriverPool, error, info);
}

}  // namespace cistern::GPU_NAMESPACE
