// What all caches of an allocator share.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "allocator/base/mutex.hpp"

namespace cistern {

class ThreadCache;

/// The caches that may hold something, each once (ThreadCache::list). A thread that takes all of it
/// back looks at no others. The lock is a leaf.
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

struct CacheGround {
  std::atomic<std::uint64_t> serving;         ///< the table's number, but while there is a router
  const std::int64_t most_small, most_large;  ///< bytes that one cache may keep
  std::atomic<std::int64_t> left;             ///< bytes that may still be granted to caches
  const std::atomic<std::uint64_t>& tick;     ///< the allocator's clock
  FilledCaches filled{};
};

}  // namespace cistern
