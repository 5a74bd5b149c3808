// The pinned host memory that pools sleep in. Pinning takes long (0.4 ms a MiB on one machine), so
// that it can be kept from one sleep to the next.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>

#include "cistern/device.hpp"
#include "cistern/sleep.hpp"

namespace cistern {

/// One piece of pinned memory.
struct PinnedChunk {
  std::byte* at = nullptr;
  std::uint64_t bytes = 0;
  bool anew = false;  ///< pinned for this sleep
};
using PinnedChunks = std::list<PinnedChunk>;

inline std::uint64_t bytesOfChunks(const PinnedChunks& chunks) {
  std::uint64_t bytes = 0;
  for (const PinnedChunk& chunk : chunks) bytes += chunk.bytes;
  return bytes;
}

/// The caller lets one thread in at a time.
///
///   held() == bytes of all chunks that take() gave and give() did not get back, and of the spares
class SleepMemory {
 public:
  /// `held`: counts held(), for any thread to read.
  SleepMemory(Device& device, std::atomic<std::uint64_t>& held) : device_(device), held_(held) {}
  SleepMemory(const SleepMemory&) = delete;
  SleepMemory& operator=(const SleepMemory&) = delete;

  /// Chunks of at least `bytes` together, kept ones first. Asks the host whether it has room before
  /// anything is pinned. Throws HostShortage, std::bad_alloc; then nothing is pinned anew.
  PinnedChunks take(std::uint64_t bytes);
  /// The chunks are no longer in use. If the device does not take one back, it is kept.
  void give(PinnedChunks chunks, HostMemory what) noexcept;
  /// After a sleep that has failed: what was pinned for it goes back, and the rest is kept.
  void undo(PinnedChunks chunks) noexcept;
  /// Gives back all that is kept.
  void giveBackSpares() noexcept;

  std::uint64_t held() const { return held_.load(std::memory_order_relaxed); }
  std::uint64_t spare() const { return bytesOfChunks(spares_); }

 private:
  void pin(PinnedChunks& chunks, std::uint64_t bytes);
  bool unpin(const PinnedChunk& chunk) noexcept;
  /// Unpins each chunk of which `goes` holds, and keeps the others, and those that the device
  /// keeps.
  template <class Goes>
  void takeBack(PinnedChunks chunks, Goes goes) noexcept;

  Device& device_;
  PinnedChunks spares_;  ///< the largest first
  std::atomic<std::uint64_t>& held_;
};

}  // namespace cistern
