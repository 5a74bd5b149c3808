// The source of a pool's segments when it is not this allocator's device, and the traits of a pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cistern/status.hpp"
#include "cistern/types.hpp"

#pragma push_macro("Status")  // as in status.hpp
#undef Status

namespace cistern {

class Device;

/// An allocator of the program's own under a pool: ncclMemAlloc, for one. It supplies whole
/// segments; the pool places blocks in them. Any thread may call it, several at a time. It must not
/// call back this allocator or its pools, which may hold locks. Its destructor may.
class CISTERN_API SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  /// `bytes` (a multiple of 2 MiB) for use on `stream` first, 512-byte aligned and below 2^57.
  /// Nobody else has them until they are freed; they are no part of a block of this allocator.
  /// kOutOfMemory when it has none. An exception leaves the verb that needed the memory, which has
  /// changed nothing. So does the PoolError for null, misaligned or too high memory, which free()
  /// gets back, and for memory that this allocator has already, which stays.
  virtual Result<Address> allocate(std::size_t bytes, Stream stream) = 0;
  /// Takes back what allocate returned. Either no queued work uses it any more, or the source waits
  /// for such work, as a device's free does. If it refuses or throws, the pool keeps the memory and
  /// tries again later.
  virtual Status free(Address address, std::size_t bytes) = 0;
  /// The page that a segment consists of, if it is one: it begins where the segment does, and has
  /// its size, rounded up to the device's granularity. Then exportBlock names it to other
  /// processes. Else they can open a block there only by the device's own means. The caller has a
  /// block in the segment.
  virtual std::optional<Page> pageOf(Address) const { return std::nullopt; }

 protected:
  SegmentSource() = default;
  SegmentSource(const SegmentSource&) = default;
  SegmentSource& operator=(const SegmentSource&) = default;
};

/// Segments that stay as they are until they are freed: each is one page of the device
/// (Device::createPage), at addresses of its own. So a library that opens a segment's memory to
/// others, as NCCL does, may keep it open until then. With `no_split` each block has a page of its
/// own. Another process can open the blocks (exportBlock), where the device exports pages.
///
/// free waits for the device. During a capture the device refuses that, and the pool keeps the
/// segment. Null if the device has no virtual memory. Pre: the device outlives the source.
CISTERN_API std::shared_ptr<SegmentSource> virtualSegments(Device& device);

/// The traits of a pool.
struct PoolTraits {
  std::shared_ptr<SegmentSource> source = nullptr;  ///< null: the device
  bool no_split = false;                            ///< each block has a segment of its own
  /// kHost: all of its pages are of the host's memory (docs/overflow.md). It has neither a source
  /// nor no_split then, and does not lend.
  Location location = Location::kDevice;
  /// Each block has a segment of its own, which is one handle of the driver: a page (as with
  /// virtualSegments and no_split), or a device malloc where the allocator's memory comes in
  /// segments. So a library that looks at a block's first handle only, as UCX does, sees all of it.
  /// Not with a source, nor in host memory. It costs 2 MiB at least a block.
  bool one_handle = false;
  std::uint64_t limit = UINT64_MAX;  ///< Pools::setLimit
  /// Whether its memory comes in segments although the allocator's backing is pages.
  bool needsSegments() const { return source != nullptr || no_split || one_handle; }
};

/// A block that a pool's users hold.
struct LiveBlock {
  Address address = 0;
  std::uint64_t bytes = 0;      ///< usable
  std::uint64_t requested = 0;  ///< as asked
  Stream stream;
  friend bool operator==(const LiveBlock& a, const LiveBlock& b) {
    return a.address == b.address && a.bytes == b.bytes && a.requested == b.requested &&
           a.stream == b.stream;
  }
  friend bool operator!=(const LiveBlock& a, const LiveBlock& b) { return !(a == b); }
};

/// The changes made by setting a pool back to a checkpoint.
struct CheckpointDelta {
  std::vector<void*> freed;  ///< were live, and were not in the checkpoint
  std::vector<void*> made;   ///< were in the checkpoint, and were not live
};

}  // namespace cistern

#pragma pop_macro("Status")
