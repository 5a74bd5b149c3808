// Segment records: recycled, and deleted only with the allocator, so that a thread which
// looked one up a moment ago still looks at a record. The lock is a leaf.
#pragma once

#include <deque>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/engine/heap/heap_segment.hpp"

namespace cistern {

class SegmentRecords {
 public:
  /// A record of nothing. Throws std::bad_alloc.
  HeapSegment& take() {
    const MutexLock lock(mutex_);
    if (spare_.empty()) {
      spare_.reserve(made_.size() + kAtOnce);  // so that give never fails
      for (std::size_t i = 0; i < kAtOnce; ++i) spare_.push_back(&made_.emplace_back());
    }
    HeapSegment* const record = spare_.back();
    spare_.pop_back();
    return *record;
  }
  void give(HeapSegment& record) noexcept {
    const MutexLock lock(mutex_);
    spare_.push_back(&record);
  }
  std::size_t hostBytes() const {
    const MutexLock lock(mutex_);
    return made_.size() * (sizeof(HeapSegment) + sizeof(void*));
  }

 private:
  static constexpr std::size_t kAtOnce = 8;

  mutable Mutex mutex_;
  std::deque<HeapSegment> made_ CISTERN_GUARDED_BY(mutex_);
  std::vector<HeapSegment*> spare_ CISTERN_GUARDED_BY(mutex_);  ///< has room for all there are
};

}  // namespace cistern
