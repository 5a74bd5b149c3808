// The functions that Python calls: they put the allocator in PyTorch's place.
#include "exports.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include <c10/core/Allocator.h>

#include "torch_pinned.hpp"

using namespace cistern_torch;

namespace {

/// PyTorch registers its own allocators by a priority. Since 2.12 that of the device has
/// priority 1.
constexpr std::uint8_t kHighest = std::numeric_limits<std::uint8_t>::max();

/// What overflow has done on a device, in bytes.
struct OverflowFigures {
  unsigned long long host_bytes;  ///< the most that may lie in host memory; 0: overflow is off
  unsigned long long reserved;    ///< pages there
  unsigned long long handed_out;  ///< of blocks, so far
};

/// The name of a pool, as PyTorch has it.
struct PoolName {
  unsigned long long first, second;
};

/// The figures of a sleep, or of a wake, of one device.
struct SleepFigures {
  unsigned long long bytes;   ///< given back to the device, or taken from it
  unsigned long long copied;  ///< to the host, or from it
  unsigned long long stayed;  ///< of a sleep; of a wake, what stays pinned
};

// Those of the pools that the device has. A region may have had no memory there.
std::vector<cistern::MempoolId_t> known(DeviceState& state, const PoolName* names,
                                        unsigned long long count) {
  std::vector<cistern::MempoolId_t> ids;
  for (unsigned long long i = 0; i < count; ++i) {
    try {
      ids.push_back(state.pools.checkpoint({names[i].first, names[i].second}).id);
    } catch (const cistern::PoolError&) {
    }
  }
  return ids;
}

}  // namespace

/// Null, or why not: static storage, or until the next call. To be called once, before CUDA is
/// initialised.
CISTERN_TORCH_CALL const char* cistern_torch_install() {
  if (installed() != nullptr) return nullptr;
  if (theirs::get() != nullptr && theirs::get()->initialized())
    return "CUDA is initialised already: tensors of PyTorch's own allocator may be there";
  const std::string chosen = theirs::get() != nullptr ? theirs::get()->name() : "native";
  if (chosen != "native")
    TORCH_WARN("cistern: the setting backend:", chosen, " has no effect: Cistern is in use");
  auto* const made = new TorchAllocator(chosen);
  setInstalled(made);
  theirs::allocator.store(made);
  c10::SetAllocator(c10::kCUDA, made, kHighest);
  at::setHostAllocator(at::kCUDA, &pinned(), kHighest);
  return nullptr;
}

/// A tensor of the device may be used on the stream, although none is allocated on it. Null, or why
/// it could not be noted: static storage, or until the next call. Pre: installed.
CISTERN_TORCH_CALL const char* cistern_torch_register_stream(int device, void* stream) {
  return told([&] {
    const auto raw = reinterpret_cast<std::uintptr_t>(stream);
    installed()->at(c10::DeviceIndex(device)).allocator.registerStream(cistern::Stream(raw));
  });
}

/// The release of PyTorch that this was built against, 211 for 2.11.
CISTERN_TORCH_CALL int cistern_torch_built_against() { return CISTERN_TORCH; }

// The functions that Python calls for tensors in host memory.

/// The memory of pools that the calling thread makes from now on: cistern_torch::PoolMemory.
CISTERN_TORCH_CALL void cistern_torch_pools_ahead(int memory) { setPoolsAhead(PoolMemory(memory)); }

/// Whether the memory at `pointer` is a block in host memory. False also for memory that is not
/// Cistern's. Pre: installed.
CISTERN_TORCH_CALL int cistern_torch_in_host_memory(int device, const void* pointer) {
  try {
    return cistern::pools(device).allocator().locationOf(pointer) == cistern::Location::kHost ? 1
                                                                                              : 0;
  } catch (const std::exception&) {
    return 0;
  }
}

/// Devices whose first tensor is made from now on have overflow: so many bytes of host memory, for
/// each. Pre: installed.
CISTERN_TORCH_CALL void cistern_torch_set_overflow(unsigned long long host_bytes) {
  installed()->setOverflow(host_bytes);
}

/// From now on `call` is called when a device is short of memory, before it overflows or is out of
/// it. Returns whether it has freed something. Null: nothing is called. Any thread calls it, also
/// at once with the next call of this function. Pre: installed.
CISTERN_TORCH_CALL void cistern_torch_when_short(int (*call)(int device)) {
  installed()->setWhenShort(call);
}

/// The bytes of tensors that lie in the device's own memory now; 0 on a device that has none. Pre:
/// installed.
CISTERN_TORCH_CALL unsigned long long cistern_torch_on_device(int device) {
  return readOf(device, [](DeviceState& state) {
    const cistern::MemoryStats now = state.allocator.memoryStats();
    const auto all = std::uint64_t(now[cistern::Stat::kAllocatedBytes].current);
    return all - std::min(all, std::uint64_t(now.host_page_allocated_bytes));
  });
}

/// The most bytes of the device that tensors needed at a time since it was asked last, as
/// CachingAllocator::takePeak says; 0 on a device that has none. Pre: installed.
CISTERN_TORCH_CALL unsigned long long cistern_torch_take_peak(int device) {
  return readOf(device, [](DeviceState& state) { return state.allocator.takePeak(); });
}

/// Whether it could be read: not on a device that had no tensor yet. Pre: installed.
CISTERN_TORCH_CALL int cistern_torch_overflow(int device, OverflowFigures* figures) {
  return readOf(device, [&](DeviceState& state) {
    const cistern::OverflowReport report = state.allocator.overflow();
    *figures = {report.host_bytes, report.reserved, report.handed_out};
    return 1;
  });
}

/// The bytes that the device has for this process, by its limit too; 0 on a device that had no
/// tensor yet. Asks the driver. Pre: installed.
CISTERN_TORCH_CALL unsigned long long cistern_torch_capacity(int device) {
  return readOf(device, [](DeviceState& state) {
    cistern::CachingAllocator& allocator = state.allocator;
    const auto reserved = allocator.memoryStats()[cistern::Stat::kReservedBytes].current;
    const std::uint64_t free = allocator.getMemoryInfo().orThrow().free_bytes;
    return std::min(allocator.limit(), free + std::uint64_t(reserved));
  });
}

// The functions that Python calls to put PyTorch's pools to sleep, to wake them, and to limit them.

/// Puts those of the pools to sleep that the device has. `contents`: cistern::Contents. Null, or
/// why not: static storage, or until the next call. Pre: installed.
CISTERN_TORCH_CALL const char* cistern_torch_sleep(int device, const PoolName* names,
                                                   unsigned long long count, int contents,
                                                   SleepFigures* figures) {
  return told([&] {
    DeviceState& state = installed()->at(c10::DeviceIndex(device));
    const cistern::SleepReport report =
        cistern::pools(device).sleep(known(state, names, count), cistern::Contents(contents));
    *figures = {report.released, report.saved, report.stayed};
  });
}

/// Wakes those of the pools that the device has. `memory`: cistern::HostMemory. Returns as
/// cistern_torch_sleep does.
CISTERN_TORCH_CALL const char* cistern_torch_wake(int device, const PoolName* names,
                                                  unsigned long long count, int memory,
                                                  SleepFigures* figures) {
  return told([&] {
    DeviceState& state = installed()->at(c10::DeviceIndex(device));
    const cistern::WakeReport report =
        cistern::pools(device).wake(known(state, names, count), cistern::HostMemory(memory));
    *figures = {report.mapped, report.restored, report.pinned};
  });
}

/// `asleep`: whether any of the pools sleeps on the device. Returns as cistern_torch_sleep does.
CISTERN_TORCH_CALL const char* cistern_torch_asleep(int device, const PoolName* names,
                                                    unsigned long long count, int* asleep) {
  return told([&] {
    const std::vector<cistern::MempoolId_t> ids =
        known(installed()->at(c10::DeviceIndex(device)), names, count);
    cistern::Pools& pools = cistern::pools(device);
    *asleep = std::ranges::any_of(ids, [&](const auto& id) { return pools.isAsleep(id); }) ? 1 : 0;
  });
}

/// Limits those of the pools that the device has: Pools::setLimit. Returns as cistern_torch_sleep
/// does.
CISTERN_TORCH_CALL const char* cistern_torch_limit(int device, const PoolName* names,
                                                   unsigned long long count,
                                                   unsigned long long bytes) {
  return told([&] {
    DeviceState& state = installed()->at(c10::DeviceIndex(device));
    for (const cistern::MempoolId_t id : known(state, names, count))
      cistern::pools(device).setLimit(id, bytes);
  });
}

/// Copies the bytes that the tensor's memory had when its pool fell asleep to `to`, in the host's
/// memory: Pools::copySaved. `copied`: whether all of them were saved. Returns as
/// cistern_torch_sleep does.
CISTERN_TORCH_CALL const char* cistern_torch_copy_saved(int device, void* to, const void* from,
                                                        unsigned long long bytes, int* copied) {
  return told([&] { *copied = cistern::pools(device).copySaved(to, from, bytes) ? 1 : 0; });
}

/// Whether it could be read: not on a device of which nothing was asked yet. Pre: installed.
CISTERN_TORCH_CALL int cistern_torch_usage(int device, Usage* usage) {
  return readOf(device, [&](DeviceState& state) {
    *usage = state.usage();
    return 1;
  });
}
