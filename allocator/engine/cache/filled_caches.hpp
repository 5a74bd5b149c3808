// The caches that may hold something. A thread that takes all of it back looks at no others.
#pragma once

#include <vector>

#include "allocator/base/mutex.hpp"

namespace cistern {

class ThreadCache;

/// Each is in it at most once (ThreadCache::list). The lock is a leaf.
class FilledCaches {
 public:
  /// As many may be added. Throws std::bad_alloc.
  void makeRoom(std::size_t caches) {
    const MutexLock lock(mutex_);
    if (caches_.capacity() < caches) caches_.reserve(2 * caches);
  }
  void add(ThreadCache& cache) noexcept {
    const MutexLock lock(mutex_);
    caches_.push_back(&cache);
  }
  /// All that were added; none are in it now. Throws std::bad_alloc, changing nothing.
  std::vector<ThreadCache*> takeAll();

 private:
  Mutex mutex_;
  std::vector<ThreadCache*> caches_ CISTERN_GUARDED_BY(mutex_);
};

}  // namespace cistern
