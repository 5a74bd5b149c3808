// Segment records: recycled, and deleted only with the allocator, so that a thread which
// looked one up a moment ago still looks at a record. The lock is a leaf.
#pragma once

#include <deque>
#include <utility>

#include "allocator/base/mutex.hpp"
#include "allocator/engine/heap/heap_segment.hpp"

namespace cistern {

class SegmentRecords {
 public:
  /// A record of nothing. Throws std::bad_alloc.
  HeapSegment& take() {
    const MutexLock lock(mutex_);
    if (spare_ == nullptr) return made_.emplace_back();
    return static_cast<HeapSegment&>(*std::exchange(spare_, spare_->next));
  }
  void give(HeapSegment& record) noexcept {
    const MutexLock lock(mutex_);
    record.next = std::exchange(spare_, &record);
  }
  std::size_t hostBytes() const {
    const MutexLock lock(mutex_);
    return made_.size() * sizeof(HeapSegment);
  }

 private:
  mutable Mutex mutex_;
  std::deque<HeapSegment> made_ CISTERN_GUARDED_BY(mutex_);
  Segment* spare_ CISTERN_GUARDED_BY(mutex_) = nullptr;  ///< linked by next
};

}  // namespace cistern
