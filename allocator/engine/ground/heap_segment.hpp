// A segment, as a heap has it.
#pragma once

#include <atomic>
#include <cstdint>

#include "allocator/layout/layout.hpp"
#include "cistern/statistics.hpp"

namespace cistern {

class Heap;

/// A segment with the heap that owns it. Records are recycled, never deleted before the allocator.
///
/// A place is an address in the order of age, not on the device. The layout knows a segment by its
/// place (Segment::base). So the allocator chooses which segment is preferred. The choice is the
/// same on every device, whatever addresses its driver hands out.
///
/// One cache line: a free looks into it first. With a million blocks it is seldom in the
/// processor's cache.
struct alignas(64) HeapSegment : Segment {
  Address device_base = 0;  ///< its address on the device
  /// Changes only while the segment is wholly free. A thread without a block in it loads with
  /// acquire, which pairs with Heap::add. Heaps live as long as the allocator.
  std::atomic<Heap*> heap{nullptr};
  SizeKind kind = SizeKind::kSmall;  ///< read without a lock by holders of its blocks
  /// The allocator's tick when the segment last became wholly free. It lies in the same eight bytes
  /// as `kind`. Writing it does not write `kind`.
  std::uint64_t idle_since : 56 = 0;

  /// Whether it is the heap's and covers the device address. Pre: the heap's lock is held.
  bool covers(Address address, const Heap& of) const {
    return heap.load(std::memory_order_relaxed) == &of && covers(address);
  }
  Address deviceEnd() const { return device_base + bytes; }
  bool covers(Address address) const { return address - device_base < bytes; }
  Address onDevice(Address place) const { return device_base + (place - base); }
  Address placeOf(Address address) const { return base + (address - device_base); }
};

static_assert(sizeof(HeapSegment) == 64);

/// In the order of age, ranges of pages have the upper half of the places that a block can name
/// (2^57 bytes). Other segments have the lower half. No segment is at 0.
inline constexpr Address kSegmentPlaces = kMiB, kRangePlaces = Address{1} << 56;

/// Whether it is a range of addresses for pages.
inline bool isRange(const HeapSegment& segment) { return segment.base >= kRangePlaces; }

inline HeapSegment& segmentOf(const Block& block) {
  return static_cast<HeapSegment&>(*block.segment);
}

/// The heap that has it. Pre: the block is in use, or the heap's lock is held.
inline Heap& heapOf(const Block& block) {
  return *segmentOf(block).heap.load(std::memory_order_acquire);
}
/// The address of a block on the device.
inline Address deviceAddress(const Block& block) {
  return segmentOf(block).onDevice(block.address());
}

}  // namespace cistern
