// Records that are reused, and stay in place until all of them go. A thread with a pointer to one
// that was just recycled still looks at a record. Thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <utility>

#include "allocator/base/mutex.hpp"

namespace cistern {

/// `Record::next` links the spare ones.
template <class Record>
class Recycled {
 public:
  /// The record that came back last, as it was then, or a new one. Throws std::bad_alloc.
  Record& take() {
    const MutexLock lock(mutex_);
    if (spare_ == nullptr) return all_.emplace_back();
    return static_cast<Record&>(*std::exchange(spare_, spare_->next));
  }
  void recycle(Record& record) noexcept {
    const MutexLock lock(mutex_);
    record.next = std::exchange(spare_, &record);
  }
  /// The number of records, in use or not.
  std::size_t size() const {
    const MutexLock lock(mutex_);
    return all_.size();
  }
  /// Calls visit(const Record&) for each, in use or not. Pre: no other thread uses them meanwhile.
  template <class Visit>
  void forEach(Visit visit) const CISTERN_NO_TSA {
    for (const Record& record : all_) visit(record);
  }

 private:
  mutable Mutex mutex_{LockRank::kRecycled};
  std::deque<Record> all_ CISTERN_GUARDED_BY(mutex_);
  /// It may be a part of a record.
  decltype(Record::next) spare_ CISTERN_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace cistern
