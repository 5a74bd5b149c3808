// What the allocator as a whole has, and what always holds of it. It owns nothing. Thread-safe;
// whoever looks at all heaps holds them still meanwhile, in the order in which they were made.
#pragma once

#include "allocator/engine/core.hpp"

namespace cistern {

class Accounting {
 public:
  explicit Accounting(Core& core) : core_(core) {}

  MemoryStats memoryStats() const;
  CacheInfo cacheInfo() const;
  /// Checks the invariants of heaps, caches, pages, the segment map and the limit; aborts on a
  /// broken one.
  void audit() const;

 private:
  void auditHeaps() const;
  std::uint64_t hostBytes() const;

  Core& core_;
};

}  // namespace cistern
