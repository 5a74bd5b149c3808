// How many bytes one cache may keep of one kind of sizes.
//
//   cached + room == limit <= granted        room: what it may still take without the heap's lock
//   0 <= cached <= granted
//   the grants of all caches + CacheGround::left == CacheTable::Limits::all
//
// The limit is -1 until the cache takes its first block under the lock: then there is no room.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "allocator/base/check.hpp"

namespace cistern {

class CacheBudget {
 public:
  std::int64_t cached() const noexcept { return limit_ - room_; }
  std::int64_t room() const noexcept { return room_; }
  std::int64_t granted() const noexcept { return granted_; }
  /// Up to so many cached bytes a block is kept. `shared`: its size shares a bin with others.
  std::int64_t mostFor(bool shared) const noexcept {
    return shared ? granted_ - granted_ / 4 : granted_;
  }
  bool fits(std::int64_t bytes, bool shared) const noexcept {
    return cached() + bytes <= mostFor(shared);
  }
  /// What it may still take under the heap's lock.
  std::int64_t left() const noexcept { return granted_ - cached(); }

  /// A block comes, or goes. The room may fall below 0 until remove() or allow().
  void add(std::int64_t bytes) noexcept { room_ -= bytes; }
  void remove(std::int64_t bytes) noexcept { room_ += bytes; }

  /// From now on there is room for `more` bytes, or up to what was granted.
  void allow(std::int64_t more) noexcept { setLimit(std::min(granted_, cached() + more)); }
  /// From now on there is none.
  void shut() noexcept { setLimit(-1); }
  bool isShut() const noexcept { return limit_ < 0; }

  /// All or nothing: a cache that may keep less than it is made for would only be in the way.
  void grant(std::int64_t bytes, std::atomic<std::int64_t>& left) noexcept {
    if (granted_ != 0) return;
    if (left.fetch_sub(bytes, std::memory_order_relaxed) >= bytes) {
      granted_ = bytes;
    } else {
      left.fetch_add(bytes, std::memory_order_relaxed);
    }
  }
  /// Pre: nothing is cached.
  void giveBack(std::atomic<std::int64_t>& left) noexcept {
    left.fetch_add(granted_, std::memory_order_relaxed);
    granted_ = 0;
  }

  /// `bytes`: of the blocks that are cached.
  void audit(std::int64_t bytes) const {
    CISTERN_CHECK(bytes == cached() && cached() <= granted_ && limit_ <= granted_);
  }

 private:
  void setLimit(std::int64_t to) noexcept {
    room_ += to - limit_;
    limit_ = to;
  }

  std::int64_t room_ = -1;
  std::int64_t limit_ = -1;
  std::int64_t granted_ = 0;  ///< out of what all caches share
};

}  // namespace cistern
