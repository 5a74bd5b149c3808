// Segment records: recycled, and deleted only with the allocator, so that whoever looked one up a
// moment ago still looks at a record. Own lock, a leaf.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/engine/heap/heap.hpp"
#include "allocator/layout/host_memory.hpp"

namespace cistern {

class SegmentRecords {
 public:
  SegmentRecords() = default;
  ~SegmentRecords() {
    for (const Slab& slab : slabs_)
      HostAllocator<HeapSegment>().deallocate(slab.records, slab.count);
  }
  SegmentRecords(const SegmentRecords&) = delete;
  SegmentRecords& operator=(const SegmentRecords&) = delete;

  /// A record of nothing. Throws std::bad_alloc.
  HeapSegment& take() {
    const MutexLock lock(mutex_);
    if (spare_.empty()) grow();
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
    return made_ * (sizeof(HeapSegment) + sizeof(void*));
  }

 private:
  struct Slab {
    HeapSegment* records;
    std::size_t count;
  };

  // By half of what there is, so that a large allocator's records lie together; at most a huge
  // page.
  void grow() CISTERN_REQUIRES(mutex_) {
    constexpr std::size_t kMost = HostAllocator<HeapSegment>::kHugePage / sizeof(HeapSegment);
    const std::size_t count = std::clamp<std::size_t>(made_ / 2, 8, kMost);
    spare_.reserve(made_ + count);  // so that give never fails
    slabs_.reserve(slabs_.size() + 1);
    HeapSegment* records = HostAllocator<HeapSegment>().allocate(count);
    std::uninitialized_default_construct_n(records, count);
    slabs_.push_back({records, count});
    made_ += count;
    for (std::size_t i = count; i-- > 0;) spare_.push_back(&records[i]);
  }

  mutable Mutex mutex_;
  std::vector<Slab> slabs_ CISTERN_GUARDED_BY(mutex_);
  std::vector<HeapSegment*> spare_ CISTERN_GUARDED_BY(mutex_);  ///< has room for all there are
  std::size_t made_ CISTERN_GUARDED_BY(mutex_) = 0;
};

}  // namespace cistern
