// Checks in debug and audit builds that each thread takes locks in the order of their ranks. So a
// deadlock that two threads could have shows in any one of them. Release builds check nothing.
#pragma once

#include "allocator/base/lock_ranks.hpp"

namespace cistern {
namespace lock_order {

#if defined(CISTERN_DEBUG) || defined(CISTERN_AUDIT_BUILD)
/// The calling thread is about to wait for a lock. Aborts, naming that and one that it holds,
/// unless it may. A thread that only tries may take any: it does not wait.
void check(LockRank rank) noexcept;
/// It has taken the lock, or given it up. Locks may be given up in any order.
void taken(LockRank rank) noexcept;
void givenUp(LockRank rank) noexcept;
#else
inline void check(LockRank) noexcept {}
inline void taken(LockRank) noexcept {}
inline void givenUp(LockRank) noexcept {}
#endif

}  // namespace lock_order

/// Checks and notes for a scope a lock that is no Mutex, such as one with a condition variable. It
/// stands before that lock.
class RankedScope {
 public:
  explicit RankedScope(LockRank rank) noexcept : rank_(rank) {
    lock_order::check(rank);
    lock_order::taken(rank);
  }
  ~RankedScope() { lock_order::givenUp(rank_); }
  RankedScope(const RankedScope&) = delete;
  RankedScope& operator=(const RankedScope&) = delete;

 private:
  const LockRank rank_;
};

}  // namespace cistern
