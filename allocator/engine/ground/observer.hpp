// The hook for the library that records what happens to an allocator's memory (allocator/history).
// The engine knows no more of it than this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "allocator/base/thread_scope.hpp"
#include "allocator/hooks/memory_log.hpp"
#include "cistern/report.hpp"
#include "cistern/statistics.hpp"

namespace cistern {

class Heap;

/// Where a request comes from, in numbers that only the observer can read.
struct RequestOrigin {
  std::uint64_t recording = 0;  ///< `stack` is a number of this one
  std::uint32_t stack = 0;
  std::uint32_t label = 0;
};

/// While it lives, the calling thread's requests have this origin.
class OriginScope : public ThreadScope<OriginScope> {
 public:
  explicit OriginScope(const RequestOrigin& origin) noexcept : origin_(origin) {}
  /// That of the request that the calling thread is in; an empty one for none.
  static RequestOrigin current() noexcept {
    return innermost() == nullptr ? RequestOrigin{} : innermost()->origin_;
  }

 private:
  const RequestOrigin origin_;
};

/// Is told of an allocator's memory from observe() on (core/core.hpp). It lives as long as the
/// allocator. Meanwhile no request hits a cache, because a hit tells nobody: every block goes
/// through its heap.
class Observer : public MemoryListener {
 public:
  /// The origin of a request of the calling thread. No lock is held: it may call the program.
  virtual RequestOrigin originOfRequest() noexcept = 0;

  // ---- Under the lock of the block's heap, so that the events of an address are in order.

  virtual void allocated(Address address, std::uint64_t bytes, Stream stream,
                         MempoolId_t pool) noexcept = 0;
  /// `pending`: other streams still use the block, until usesEnded().
  virtual void freed(Address address, bool pending) noexcept = 0;
  /// Also of blocks that were not freed so: allocators set free memory aside, too.
  virtual void usesEnded(Address address) noexcept = 0;

  /// A request has found no memory. It may set report.dump. No lock is held. Called as long as the
  /// observer lives, also while it is told of nothing else.
  virtual void failed(OutOfMemoryReport& report) noexcept = 0;
  /// Checks what it knows against the heaps; aborts if they differ. Pre: all heaps are held.
  virtual void audit(const std::vector<Heap*>& heaps) const = 0;
};

}  // namespace cistern
