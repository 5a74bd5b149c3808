// Where a pool's segments come from when it is not this allocator's device, and what is special
// about a pool.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "cistern/status.hpp"
#include "cistern/types.hpp"

#pragma push_macro("Status")  // as in status.hpp
#undef Status

namespace cistern {

/// An allocator of the program's own under a pool: ncclMemAlloc, for one. It supplies whole
/// segments, which the pool places blocks in. Called from any thread, several at a time; must not
/// call this allocator or its pools back, which may be holding locks. Its destructor may.
class CISTERN_API SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  /// `bytes` (a multiple of 2 MiB) for use on `stream` first, 512-byte aligned, that are nobody's
  /// until they are freed: no part of a block of this allocator. kOutOfMemory when there are none.
  /// What it throws leaves the verb that needed the memory, which changed nothing.
  virtual Result<Address> allocate(std::size_t bytes, Stream stream) = 0;
  /// Takes back what allocate returned. No queued work uses it any more, or the source waits for
  /// what does, as a device's free does. Where it refuses, or throws, the pool keeps the memory and
  /// asks again later.
  virtual Status free(Address address, std::size_t bytes) = 0;

 protected:
  SegmentSource() = default;
  SegmentSource(const SegmentSource&) = default;
  SegmentSource& operator=(const SegmentSource&) = default;
};

/// What is special about a pool.
struct PoolTraits {
  std::shared_ptr<SegmentSource> source;  ///< null: the device
  bool no_split = false;                  ///< each block has a segment of its own
  /// Whether its memory comes in segments although the allocator's backing is pages.
  bool needsSegments() const { return source != nullptr || no_split; }
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

/// What setting a pool back has changed.
struct CheckpointDelta {
  std::vector<void*> freed;  ///< were live, and were not in the checkpoint
  std::vector<void*> made;   ///< were in the checkpoint, and were not live
};

}  // namespace cistern

#pragma pop_macro("Status")
