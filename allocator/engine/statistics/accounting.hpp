// What the allocator as a whole has, and what always holds of it. It owns nothing. Thread-safe;
// whoever looks at all heaps holds them still meanwhile, in the order in which they were made.
#pragma once

#include "allocator/engine/core.hpp"

namespace cistern {

/// What is cached at this moment, in bytes.
struct CacheInfo {
  std::uint64_t free_bytes = 0;
  std::uint64_t largest_free_block = 0;
};

class Accounting {
 public:
  explicit Accounting(Core& core) : core_(core) {}

  MemoryStats memoryStats() const;
  CacheInfo cacheInfo() const;
  /// Walks every structure and checks every invariant; aborts on a broken one.
  void audit() const;

 private:
  template <class Visit>
  void withAllHeaps(Visit visit) const;
  void auditHeaps() const;
  std::uint64_t hostBytes() const;

  Core& core_;
};

}  // namespace cistern
