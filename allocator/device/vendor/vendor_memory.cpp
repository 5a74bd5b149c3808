// Plain device memory, pinned host memory, peers.
#include "allocator/device/vendor/vendor_device.hpp"

namespace cistern::GPU_NAMESPACE {
namespace {

Error copyAll(std::span<const BusCopy> copies, bool out, StreamHandle stream) {
  const Error together =
      copies.size() > 1 ? copyTogether(copies, out, stream) : GPU(ErrorNotSupported);
  if (together != GPU(ErrorNotSupported)) return together;
  for (const BusCopy& copy : copies) {
    void *const there = toPointer(copy.device), *const here = copy.host;
    const Error error =
        out ? GPU(MemcpyAsync)(here, there, copy.bytes, GPU(MemcpyDeviceToHost), stream)
            : GPU(MemcpyAsync)(there, here, copy.bytes, GPU(MemcpyHostToDevice), stream);
    if (error != kSuccess) return error;
  }
  return kSuccess;
}

}  // namespace

Result<Address> VendorDevice::doMalloc(std::size_t bytes) {
  void* memory = nullptr;
  const Error error = onDevice([&] { return GPU(Malloc)(&memory, bytes); });
  return outcome(Call::kMalloc, error, toAddress(memory));
}

Status VendorDevice::doFree(Address address) {
  return outcome(Call::kFree, onDevice([&] { return GPU(Free)(toPointer(address)); }));
}

Result<MemoryInfo> VendorDevice::doMemoryInfo() {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  const Error error = onDevice([&] { return GPU(MemGetInfo)(&free_bytes, &total_bytes); });
  return outcome(Call::kMemoryInfo, error, MemoryInfo{free_bytes, total_bytes});
}

Status VendorDevice::doCopy(Address to, Address from, std::size_t bytes, Stream stream) {
  return outcome(Call::kCopy, onDevice([&] {
                   return GPU(MemcpyAsync)(toPointer(to), toPointer(from), bytes,
                                           GPU(MemcpyDeviceToDevice), handleOf(stream));
                 }));
}

Status VendorDevice::doCopyOut(const BusCopy* copies, std::size_t number, Stream stream) {
  return outcome(Call::kCopyOut, onDevice([&] {
                   return copyAll({copies, number}, true, handleOf(stream));
                 }));
}

Status VendorDevice::doCopyIn(const BusCopy* copies, std::size_t number, Stream stream) {
  return outcome(Call::kCopyIn, onDevice([&] {
                   return copyAll({copies, number}, false, handleOf(stream));
                 }));
}

Status VendorDevice::doClear(Address at, std::size_t bytes, Stream stream) {
  return outcome(Call::kClear, onDevice([&] {
                   return GPU(MemsetAsync)(toPointer(at), 0, bytes, handleOf(stream));
                 }));
}

Result<void*> VendorDevice::doHostMalloc(std::size_t bytes) {
  void* memory = nullptr;
  const Error error = onDevice([&] { return pinnedMalloc(&memory, bytes); });
  return outcome(Call::kHostMalloc, error, memory);
}

Status VendorDevice::doHostFree(void* pointer) {
  return outcome(Call::kHostFree, onDevice([&] { return pinnedFree(pointer); }));
}

Result<bool> VendorDevice::doCanAccessPeer(int peer_ordinal) {
  if (peer_ordinal == facts_.ordinal) return true;  // the runtimes say no to a device and itself
  int can = 0;
  const Error error =
      onDevice([&] { return GPU(DeviceCanAccessPeer)(&can, facts_.ordinal, peer_ordinal); });
  return outcome(Call::kCanAccessPeer, error, can != 0);
}

}  // namespace cistern::GPU_NAMESPACE
