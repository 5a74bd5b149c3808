// The state of one device: Cistern's allocator there, which all of the process shares, and
// PyTorch's pools and history beside it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "cistern/memory.hpp"
#include "history.hpp"
#include "releases/settings.hpp"
#include "torch_pools.hpp"

namespace cistern_torch {

/// The use of a device since the process began, whatever statistics were reset since.
struct Usage {
  std::uint64_t requested_peak, reserved_peak;  ///< bytes
  std::uint64_t taken, returned;  ///< times that the driver gave memory, and got it back
  std::uint64_t retries;          ///< requests that had to give memory back to go on
  std::uint64_t out_of_memory;    ///< requests that failed
  std::uint64_t moved;            ///< pages that were mapped elsewhere, rather than new ones made
  std::uint64_t call_ns;          ///< the host's time in the driver's calls for all that
};

struct DeviceState {
  /// `fraction`: of the device's memory; no more may be reserved.
  DeviceState(DeviceIndex ordinal, double fraction)
      : device(ordinal),
        allocator(cistern::allocator(ordinal)),
        pools(cistern::pools(ordinal)),
        history(ordinal) {
    keepTo(fraction);
    if (kPoolFigures) pools.countReserved();
    allocator.registerStream(cistern::Stream{});
  }

  /// No more may be reserved than this part of the device's memory. 0 is one to PyTorch: nothing
  /// more.
  void limitTo(double fraction);

  /// What the device has no room for may take so many bytes of host memory. Where that is refused,
  /// overflow stays as it was. Returns why: "" if it was not.
  std::string overflowInto(std::uint64_t host_bytes);

  /// Tells the history what became of memory since the last time, with that stack.
  void tellMemoryEvents(const Context& context);
  /// Tells those that listen so far, before others do.
  void tellPending() {
    if (history.listening()) tellMemoryEvents(nullptr);
  }
  /// Listens to what becomes of memory while the history does.
  void follow();
  /// From now on trackers hear of memory that comes, and of memory before it goes: a library that
  /// registers it can still take its registration back. No lock is held.
  void tellTrackersOfMemory();
  /// The figures of torch.cuda.memory_stats.
  c10::CachingDeviceAllocator::DeviceStats statistics();
  void resetAccumulated();
  /// Call it before peaks are reset, because it reads them.
  Usage usage();

  const DeviceIndex device;
  cistern::CachingAllocator& allocator;
  TorchPools pools;
  History history;
  /// Requests that the limit refused while limitRejects().
  std::atomic<std::uint64_t> rejections{0};

 private:
  /// Retries, out-of-memory errors, rejections, waits, allocations and frees of the device: as
  /// often as they have happened.
  using EventCounts = std::array<std::uint64_t, 6>;

  void keepTo(double fraction);
  EventCounts countsOf(const cistern::MemoryStats& now) const;

  /// At a time before the last reset.
  std::atomic<std::uint64_t> most_requested_{0}, most_reserved_{0};
  std::mutex counting_;
  EventCounts counted_before_{};  ///< the last reset of accumulated statistics
  std::once_flag hooked_;
  std::mutex telling_;  ///< keeps what one thread has taken before what the next one takes
};

}  // namespace cistern_torch
