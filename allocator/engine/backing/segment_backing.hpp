// The backing `segments`: one device malloc for each segment, or one call to the source of the
// request's pool. It owns the segments that no heap has, and the records of all; the heaps own the
// others. Every verb leaves everything as it was when a device call fails, and makes
// no device call under a heap's lock. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/base/recycled.hpp"
#include "allocator/engine/core/core.hpp"
#include "allocator/engine/ground/holds.hpp"
#include "allocator/engine/ground/limit.hpp"
#include "allocator/layout/places.hpp"
#include "cistern/device.hpp"

namespace cistern {

struct SharedPage;

/// A segment from here, with what is seldom asked of it.
struct DeviceSegment : HeapSegment {
  std::uint64_t number = 0;  ///< they are numbered in the order in which they came
  /// Its page, to other processes, while any holds it. The lock of the pages guards it.
  std::weak_ptr<const SharedPage> exported{};
  /// Free memory that was withdrawn, until hooks have heard of it and the device has it.
  struct Withdrawn {
    Heap* owner = nullptr;
    bool was_there = false;
    std::shared_ptr<void> visiting{};  ///< its pool stays
  };
  Withdrawn withdrawn{};
  // The backing's lock guards these.
  HoldCounts holds;
  std::uint32_t capture = 0;  ///< of the last footprint that it became part of; 0: none holds it
};

/// Pre: it is no range of addresses.
inline DeviceSegment& deviceSegmentOf(HeapSegment& segment) {
  return static_cast<DeviceSegment&>(segment);
}
inline const DeviceSegment& deviceSegmentOf(const HeapSegment& segment) {
  return static_cast<const DeviceSegment&>(segment);
}

class SegmentBacking final : MemoryHooks::Owner {
 public:
  explicit SegmentBacking(Core& core) : core_(core) {}
  SegmentBacking(const SegmentBacking&) = delete;
  SegmentBacking& operator=(const SegmentBacking&) = delete;

  /// A block for the request out of a new segment of the usual size; null when there is no room for
  /// one. `tightly`: of one just as large as need be; null too when that is the usual size. Throws
  /// std::bad_alloc, and what a pool's source throws. Throws PoolError if a source, DeviceFailure
  /// if the device returns what cannot be used. That goes back, unless the allocator has it
  /// already.
  Block* grow(Heap& heap, const Request& request, bool tightly = false);

  /// Gives segments that lie wholly free in the heaps back to the device until `bytes` are back.
  /// Returns how many are. Heaps whose memory is pages are passed over.
  /// `until`: only those that were not used after that tick.
  std::uint64_t release(const std::vector<Heap*>& heaps, std::uint64_t bytes,
                        std::uint64_t until = UINT64_MAX);
  /// The bytes of the segments that it would give back.
  std::uint64_t releasableBytes(const std::vector<Heap*>& heaps) const;
  /// Gives back what was unused for at least the mean time, until no more than `bytes` are
  /// reserved.
  void collectGarbage(const std::vector<Heap*>& heaps, std::uint64_t bytes);
  // Engine has the contracts of these three. A segment that is held stays. `capture`: 0 for none.
  void hold(const Block& block, HeldMemory& by, HoldCounts::Kind kind, std::uint32_t capture);
  void letGo(HeldMemory& by, HoldCounts::Kind kind) noexcept;
  bool isHeld(const Block& block) const;
  /// The same for a segment, if it is the heap's and covers the range; else false.
  bool hold(HeapSegment& segment, Heap& heap, AddressRange what, FixedHold& by);
  /// Adds or removes one hold on all of the pool's memory. Pre: the lock of the pages is held.
  void hold(Pool& pool, int by) noexcept {
    const MutexLock lock(mutex_);
    pool.hold(by);
  }
  /// Gives all of the heap's back, whether in use or not: the allocator ends. Pre: no other thread
  /// uses the heap.
  void leave(Heap& heap) noexcept;

  /// The bytes of segments that holds of the program's keep.
  std::uint64_t heldBytes() const {
    const MutexLock lock(mutex_);
    return held_bytes_;
  }
  /// The segment is about to go to that heap, which the first hook may have looked at before. Both
  /// heaps' locks are held. Throws std::bad_alloc.
  void noteMoved(const HeapSegment& segment, const Heap& to);
  /// MemoryHooks::addPresent for each segment of the heap. Throws std::bad_alloc.
  void tellPresent(Heap& heap);
  void finish(void* range) noexcept override;

  std::uint64_t taken() const { return taken_.load(std::memory_order_relaxed); }
  std::uint64_t returned() const { return returned_.load(std::memory_order_relaxed); }
  std::size_t hostBytes() const { return records_.size() * sizeof(DeviceSegment); }

 private:
  /// `wide`: with room for the alignment wherever the segment begins.
  Block* grow(Heap& heap, const Request& request, bool tightly, bool wide);
  /// A segment that could go, as it was a moment ago.
  struct Idle {
    HeapSegment* segment;
    Heap* heap;
    std::uint64_t bytes, since;
  };
  std::vector<Idle> idleSegments(const std::vector<Heap*>& heaps) const;
  Address takePlace(std::uint64_t bytes);
  void freePlace(const HeapSegment& segment) noexcept;
  Block* install(HeapSegment& segment, Heap& heap, const Request& request);
  /// Throws: what the pool's source, or the device, has returned breaks its promise.
  [[noreturn]] static void refuse(const Pool& pool, Address address, std::uint64_t bytes,
                                  const char* broken);
  void noteTaken(HeapSegment& segment, const Heap& heap) noexcept;
  void tellJoined(const HeapSegment& segment, const Heap& owner) noexcept;
  Status returnToDevice(const HeapSegment& segment, const Pool& pool) noexcept;
  // These return the bytes that are back, or go back when hooks have heard of that.
  std::uint64_t giveBack(HeapSegment& segment, Heap& owner, bool was_there);
  std::uint64_t giveBackNow(HeapSegment& segment, Heap& owner, bool was_there);
  std::uint64_t giveBackRefused(Heap& heap);
  std::uint64_t releaseOneIdle(HeapSegment& segment, Heap& heap);

  Core& core_;
  /// A thread that looked one up a moment ago still looks at a record.
  Recycled<DeviceSegment> records_;
  mutable Mutex mutex_{LockRank::kSegments};
  Places places_ CISTERN_GUARDED_BY(mutex_){kSegmentPlaces, kRangePlaces};
  std::uint64_t held_bytes_ CISTERN_GUARDED_BY(mutex_) = 0;
  std::atomic<std::uint64_t> taken_{0}, returned_{0};
};

}  // namespace cistern
