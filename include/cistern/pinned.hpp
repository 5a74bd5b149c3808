// Pinned host memory: copies between host and device run from and to it without the host waiting.
//
// It is expensive to get: the system maps and locks every page. So freed memory is kept and reused:
// cut to the requested size, and joined again. A block that streams use is reused only when the
// work that was queued on them up to its free is complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

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
  StatValue allocated_bytes;  ///< bytes of blocks held, rounded to 512 bytes
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

/// A block, or a piece of pinned memory that is free.
struct PinnedPiece {
  Address address = 0;
  std::uint64_t bytes = 0;         ///< rounding included
  BlockUse use = BlockUse::kFree;  ///< never kUnmapped
};

/// All verbs are thread-safe. No verb waits for queued work while there is another way. No verb
/// makes a call on a stream that is being captured: blocks that it uses wait until its capture is
/// over. A captured copy names its host memory as long as its graph is launched. The program must
/// keep that memory.
class CISTERN_API PinnedAllocator {
 public:
  /// Streams belong to the device, unless a verb names another. The device must outlive the
  /// allocator. The memory is pinned for all devices.
  explicit PinnedAllocator(Device& device);
  /// Gives everything back, also what is still allocated. Pre: no queued work uses any of it. Leaks
  /// it on purpose at process exit and in a child of fork.
  ~PinnedAllocator();
  PinnedAllocator(const PinnedAllocator&) = delete;
  PinnedAllocator& operator=(const PinnedAllocator&) = delete;

  /// `bytes` of pinned memory, 512-byte aligned; null for 0 bytes. If free memory serves the
  /// request, it makes a bounded number of device calls, however many blocks and streams wait.
  /// Throws OutOfPinnedMemory after it has given free memory back and waited for queued work.
  /// Nothing else has changed then. Throws std::bad_alloc; Error in a child of fork.
  void* allocate(std::size_t bytes);
  /// Takes a block back. It is free at once, or, if streams use it, when the work queued on them by
  /// now is complete. Null is a no-op. A pointer that is not an allocated block's is reported
  /// through the misuse hook.
  void free(void* pointer) noexcept;
  /// Declares that work queued on the stream uses the block. A stream that has the handle of a
  /// forgotten stream is ordered after the forgotten stream's end. Throws InvalidArgument for a
  /// stream that is not alive and for the per-thread default stream. Throws DeviceFailure if the
  /// stream cannot be ordered so, and std::bad_alloc. Nothing has changed after any of these.
  void recordStream(void* pointer, Stream stream) { recordStream(pointer, stream, device()); }
  /// Declares that work queued on a stream of `device` uses the block. Throws as above. Pre:
  /// `device` outlives the allocator.
  void recordStream(void* pointer, Stream stream, Device& device);
  /// Call this before the program destroys the stream, once all its work is queued. Blocks that it
  /// uses may be freed later. Pre: the stream is alive. Throws InvalidArgument for the default
  /// stream, and for one that is being captured or not alive; DeviceFailure; std::bad_alloc.
  /// Nothing has changed then. No-op for a stream that recordStream was never called with.
  void forgetStream(Stream stream) { forgetStream(stream, device()); }
  /// Forgets a stream of `device`, under the conditions of the overload above.
  void forgetStream(Stream stream, Device& device);
  /// Gives wholly free memory back to the system. Waits for a whole device only if a stream of it
  /// used freed blocks and was destroyed without forgetStream.
  void emptyCache();

  /// The most that may be pinned, in bytes; kUnlimited at first. Memory already pinned beyond it
  /// stays until freed.
  void setLimit(std::uint64_t bytes);
  std::uint64_t limit() const;

  PinnedStats stats() const;
  /// Every block and every free piece, in no order. Their bytes add up to what is pinned, as long
  /// as no other thread allocates or frees meanwhile. Throws std::bad_alloc.
  std::vector<PinnedPiece> pieces() const;
  void resetPeakStats();
  void resetAccumulatedStats();
  /// Whether the pointer is that of a block that the program has. False for null.
  bool isBlock(const void* pointer) const noexcept;
  /// The usable size of an allocated block. Throws InvalidArgument for any other pointer.
  std::size_t blockSize(const void* pointer) const;
  Device& device() const noexcept { return device_; }
  /// Replaces the default hook (report.hpp), which receives each wrong free.
  void setMisuseHook(MisuseHook hook);
  /// Checks every invariant; aborts on a broken one.
  void audit() const;

 private:
  Device& device_;
  std::unique_ptr<PinnedMemory> memory_;
};

}  // namespace cistern
