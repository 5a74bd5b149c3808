// Pinned host memory: what copies between host and device run from and to, without the host
// waiting.
//
// It is dear to get (the system maps and locks every page), so what is freed is kept and used
// again: cut to the size that is asked for, and joined again. A block that streams use is reused
// only when the work that was queued on them up to its free is complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "cistern/device.hpp"
#include "cistern/error.hpp"
#include "cistern/report.hpp"
#include "cistern/statistics.hpp"
#include "cistern/types.hpp"

namespace cistern {

class PinnedMemory;

/// The host has no more memory to pin, or the limit allows no more. The text has the figures.
class CISTERN_API OutOfPinnedMemory : public Error {
 public:
  using Error::Error;
};

/// A consistent picture of one allocator. Exact.
///
///   allocated_bytes <= active_bytes <= reserved_bytes     requested_bytes <= allocated_bytes
struct PinnedStats {
  StatValue allocation;       ///< blocks that the program holds
  StatValue segment;          ///< the runtime's allocations
  StatValue active;           ///< blocks held, or freed and still used by queued work
  StatValue requested_bytes;  ///< what the program asked for and holds
  StatValue allocated_bytes;  ///< the same, rounded to 512 bytes
  StatValue active_bytes;
  StatValue reserved_bytes;  ///< what is pinned
  std::uint64_t num_host_alloc = 0;
  std::uint64_t num_host_free = 0;
  std::uint64_t num_alloc_retries = 0;  ///< requests that had to give memory back to go on
  std::uint64_t num_ooms = 0;           ///< OutOfPinnedMemory thrown
  std::uint64_t num_waits = 0;          ///< times the host waited for queued work
  std::uint64_t num_misuses = 0;        ///< wrong frees reported
  std::uint64_t host_bytes = 0;         ///< what the bookkeeping takes
};

/// All verbs are thread-safe. None waits for queued work while there is another way, and none asks
/// anything of a stream that is being captured: what such a stream uses waits until its capture is
/// over. A captured copy names its host memory for as long as its graph is launched: the program
/// keeps it.
class CISTERN_API PinnedAllocator {
 public:
  /// Streams are those of the device, which must outlive the allocator, unless a verb names
  /// another. The memory is pinned for all devices.
  explicit PinnedAllocator(Device& device);
  /// Gives everything back, also what is still allocated. Pre: no queued work uses any of it. At
  /// process exit, and in a child of fork, leaks it on purpose.
  ~PinnedAllocator();
  PinnedAllocator(const PinnedAllocator&) = delete;
  PinnedAllocator& operator=(const PinnedAllocator&) = delete;

  /// `bytes` of pinned memory, 512-byte aligned; null for 0 bytes. If free memory serves the
  /// request, it makes a bounded number of device calls, however many blocks and streams wait.
  /// Throws OutOfPinnedMemory once all else has failed: free memory given back, queued work waited
  /// for. Then nothing has changed apart from that. Throws std::bad_alloc; Error in a child of
  /// fork.
  void* allocate(std::size_t bytes);
  /// Takes a block back: free at once, or, where streams use it, when the work queued on them by
  /// now is complete. Null is a no-op. What is no allocated block's is reported through the misuse
  /// hook.
  void free(void* pointer) noexcept;
  /// Work that is queued on the stream uses the block. A stream that has the handle of a forgotten
  /// one is ordered after that one's end. Throws InvalidArgument for a stream that is not alive and
  /// for the per-thread default stream, DeviceFailure if it cannot be ordered so, std::bad_alloc;
  /// then nothing has changed.
  void recordStream(void* pointer, Stream stream) { recordStream(pointer, stream, device()); }
  /// The same of another device's stream. Pre: that device outlives the allocator.
  void recordStream(void* pointer, Stream stream, Device& device);
  /// The program is about to destroy the stream, with all its work queued. Blocks that it uses may
  /// be freed later. Pre: the stream is alive. Throws InvalidArgument for the default
  /// stream, and for one that is being captured or not alive, DeviceFailure, std::bad_alloc; then
  /// nothing has changed.
  /// No-op for a stream that recordStream was never called with.
  void forgetStream(Stream stream) { forgetStream(stream, device()); }
  void forgetStream(Stream stream, Device& device);
  /// Gives what is wholly free back to the system. Waits for a whole device only if freed blocks
  /// were used on a stream of it that was destroyed without forgetStream.
  void emptyCache();

  /// The most that may be pinned, in bytes. What is pinned beyond it already stays until freed.
  void setLimit(std::uint64_t bytes);
  std::uint64_t limit() const;

  PinnedStats stats() const;
  void resetPeakStats();
  void resetAccumulatedStats();
  /// Whether it is the pointer of a block that the program has. Null is none.
  bool isBlock(const void* pointer) const noexcept;
  /// The usable size of an allocated block. Throws InvalidArgument for any other pointer.
  std::size_t blockSize(const void* pointer) const;
  Device& device() const noexcept { return device_; }
  /// Replaces the default hook (report.hpp), which a wrong free is told to.
  void setMisuseHook(MisuseHook hook);
  /// Checks every invariant; aborts on a broken one.
  void audit() const;

 private:
  Device& device_;
  std::unique_ptr<PinnedMemory> memory_;
};

}  // namespace cistern
