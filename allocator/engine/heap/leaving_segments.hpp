// The segments that are on their way from a heap to the device.
#pragma once

#include <cstdint>
#include <utility>

#include "allocator/engine/ground/heap_segment.hpp"

namespace cistern {

/// Segments that have left a heap for the device, and may come back: the device may refuse them.
/// Guarded by the heap's lock.
class LeavingSegments {
 public:
  /// Whether any segment is still leaving. While one is, the heap stays in its pool.
  bool any() const { return count_ != 0; }
  void begin() noexcept { ++count_; }
  void end() noexcept { --count_; }
  /// The device has refused to take back a segment that never became the heap's free memory. The
  /// segment goes on leaving, and is offered again.
  void refuse(HeapSegment& segment) noexcept { segment.next = std::exchange(refused_, &segment); }
  HeapSegment* takeRefused() noexcept {
    HeapSegment* const first = refused_;
    if (first != nullptr) refused_ = static_cast<HeapSegment*>(first->next);
    return first;
  }
  /// The refused segments, linked by `next`.
  const Segment* refused() const { return refused_; }

 private:
  std::uint32_t count_ = 0;
  HeapSegment* refused_ = nullptr;
};

}  // namespace cistern
