// The handles of one pool on one device that no thread holds, and the counts of all. Each pool
// (handle_pool.hpp) has one shelf for each device.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "allocator/base/check.hpp"
#include "allocator/base/mutex.hpp"
#include "handles/handle_statistics.hpp"

namespace cistern {

template <class Handle>
class HandleShelf {
 public:
  /// The handle put back last, now live; nothing on an empty shelf.
  std::optional<Handle> take() {
    const MutexLock lock(mutex_);
    if (free_.empty()) return std::nullopt;
    const Handle handle = free_.back();
    free_.pop_back();
    ++counts_.live;
    return handle;
  }

  /// Makes room for one more handle, so that noting it and putting it back need no memory. Called
  /// before each creation: if memory is out, this fails, while there is nothing to lose.
  void prepareForOneMore() {
    const MutexLock lock(mutex_);
    const std::size_t most = counts_.created + being_made_ + 1;
    if (free_.capacity() < most) free_.reserve(2 * most);
    ++being_made_;
  }
  void noteFailed() noexcept {
    const MutexLock lock(mutex_);
    --being_made_;
  }
  /// A new handle, live. Pre: prepareForOneMore.
  void noteCreated() noexcept {
    const MutexLock lock(mutex_);
    --being_made_;
    ++counts_.created;
    ++counts_.live;
  }

  /// Takes back a live handle; on a closed shelf it is leaked.
  void put(Handle handle) noexcept {
    const MutexLock lock(mutex_);
    CISTERN_ASSERT(counts_.live > 0);
    --counts_.live;
    if (closed_) {
      ++counts_.leaked;
      return;
    }
    free_.push_back(handle);  // there is room
  }

  /// From now on a handle that comes back is leaked.
  void close() noexcept {
    const MutexLock lock(mutex_);
    closed_ = true;
  }

  /// Destroys every free handle, outside of the lock; null leaks them.
  void empty(void (*destroy)(Handle) noexcept) noexcept {
    while (const std::optional<Handle> handle = takeAway(destroy != nullptr)) {
      if (destroy != nullptr) destroy(*handle);
    }
  }

  HandleCounts counts() const {
    const MutexLock lock(mutex_);
    HandleCounts now = counts_;
    now.free = free_.size();
    return now;
  }

 private:
  std::optional<Handle> takeAway(bool destroyed) noexcept {
    const MutexLock lock(mutex_);
    if (free_.empty()) return std::nullopt;
    const Handle handle = free_.back();
    free_.pop_back();
    ++(destroyed ? counts_.destroyed : counts_.leaked);
    return handle;
  }

  mutable Mutex mutex_{LockRank::kHandleShelf};
  std::vector<Handle> free_ CISTERN_GUARDED_BY(mutex_);  ///< last in, first out
  std::uint64_t being_made_ CISTERN_GUARDED_BY(mutex_) = 0;
  HandleCounts counts_ CISTERN_GUARDED_BY(mutex_);  ///< `free` is read off the list
  bool closed_ CISTERN_GUARDED_BY(mutex_) = false;
};

}  // namespace cistern
