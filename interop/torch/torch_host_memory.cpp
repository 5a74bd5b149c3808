// The functions that Python calls for tensors in host memory.
#include <algorithm>
#include <cstdint>
#include <exception>

#include "torch_allocator.hpp"

namespace {

using namespace cistern_torch;

/// What overflow has done on a device, in bytes.
struct OverflowFigures {
  unsigned long long host_bytes;  ///< the most that may lie in host memory; 0: overflow is off
  unsigned long long reserved;    ///< pages there
  unsigned long long handed_out;  ///< of blocks, so far
};

}  // namespace

/// The memory of pools that the calling thread makes from now on: cistern_torch::PoolMemory.
extern "C" __attribute__((visibility("default"))) void cistern_torch_pools_ahead(int memory) {
  cistern_torch::setPoolsAhead(cistern_torch::PoolMemory(memory));
}

/// Whether the memory at `pointer` is a block in host memory. False also for memory that is not
/// Cistern's. Pre: installed.
extern "C" __attribute__((visibility("default"))) int cistern_torch_in_host_memory(
    int device, const void* pointer) {
  try {
    return cistern::pools(device).allocator().locationOf(pointer) == cistern::Location::kHost ? 1
                                                                                              : 0;
  } catch (const std::exception&) {
    return 0;
  }
}

/// Devices whose first tensor is made from now on have overflow: so many bytes of host memory, for
/// each. Pre: installed.
extern "C" __attribute__((visibility("default"))) void cistern_torch_set_overflow(
    unsigned long long host_bytes) {
  installed()->setOverflow(host_bytes);
}

/// From now on `call` is called when a device is short of memory, before it overflows or is out of
/// it. Returns whether it has freed something. Null: nothing is called. Any thread calls it, also
/// at once with the next call of this function. Pre: installed.
extern "C" __attribute__((visibility("default"))) void cistern_torch_when_short(
    int (*call)(int device)) {
  installed()->setWhenShort(call);
}

/// The bytes of tensors that lie in the device's own memory now; 0 on a device that has none. Pre:
/// installed.
extern "C" __attribute__((visibility("default"))) unsigned long long cistern_torch_on_device(
    int device) {
  const DeviceState* const state = installed()->find(c10::DeviceIndex(device));
  if (state == nullptr) return 0;
  try {
    const cistern::MemoryStats now = state->allocator.memoryStats();
    const auto all = std::uint64_t(now[cistern::Stat::kAllocatedBytes].current);
    return all - std::min(all, std::uint64_t(now.host_page_allocated_bytes));
  } catch (const std::exception&) {
    return 0;
  }
}

/// The most bytes of the device that tensors needed at a time since it was asked last, as
/// CachingAllocator::takePeak says; 0 on a device that has none. Pre: installed.
extern "C" __attribute__((visibility("default"))) unsigned long long cistern_torch_take_peak(
    int device) {
  const DeviceState* const state = installed()->find(c10::DeviceIndex(device));
  if (state == nullptr) return 0;
  try {
    return state->allocator.takePeak();
  } catch (const std::exception&) {
    return 0;
  }
}

/// Whether it could be read: not on a device that had no tensor yet. Pre: installed.
extern "C" __attribute__((visibility("default"))) int cistern_torch_overflow(
    int device, OverflowFigures* figures) {
  const DeviceState* const state = installed()->find(c10::DeviceIndex(device));
  if (state == nullptr) return 0;
  try {
    const cistern::OverflowReport report = state->allocator.overflow();
    *figures = {report.host_bytes, report.reserved, report.handed_out};
    return 1;
  } catch (const std::exception&) {
    return 0;
  }
}

/// The bytes that the device has for this process, by its limit too; 0 on a device that had no
/// tensor yet. Asks the driver. Pre: installed.
extern "C" __attribute__((visibility("default"))) unsigned long long cistern_torch_capacity(
    int device) {
  const DeviceState* const state = installed()->find(c10::DeviceIndex(device));
  if (state == nullptr) return 0;
  try {
    cistern::CachingAllocator& allocator = state->allocator;
    const auto reserved = allocator.memoryStats()[cistern::Stat::kReservedBytes].current;
    const std::uint64_t free = allocator.getMemoryInfo().orThrow().free_bytes;
    return std::min(allocator.limit(), free + std::uint64_t(reserved));
  } catch (const std::exception&) {
    return 0;
  }
}
