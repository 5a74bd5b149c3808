// Segment records: recycled, and deleted only with the allocator, so that whoever looked one up a
// moment ago still looks at a record. Own lock, a leaf.
#pragma once

#include <deque>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/engine/heap.hpp"

namespace cistern {

class SegmentRecords {
 public:
  /// A record of nothing. Throws std::bad_alloc.
  HeapSegment& take() {
    const MutexLock lock(mutex_);
    if (spare_.empty()) {
      spare_.reserve(records_.size() + 1);  // so that give never fails
      return records_.emplace_back();
    }
    HeapSegment* record = spare_.back();
    spare_.pop_back();
    return *record;
  }
  void give(HeapSegment& record) noexcept {
    const MutexLock lock(mutex_);
    spare_.push_back(&record);
  }
  std::size_t hostBytes() const {
    const MutexLock lock(mutex_);
    return records_.size() * (sizeof(HeapSegment) + sizeof(void*));
  }

 private:
  mutable Mutex mutex_;
  std::deque<HeapSegment> records_ CISTERN_GUARDED_BY(mutex_);
  std::vector<HeapSegment*> spare_ CISTERN_GUARDED_BY(mutex_);
};

}  // namespace cistern
