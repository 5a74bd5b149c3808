#include "allocator/base/lock_order.hpp"

#if defined(CISTERN_DEBUG) || defined(CISTERN_AUDIT_BUILD)

#include <array>
#include <cstdio>
#include <cstdlib>

#include "allocator/base/check.hpp"

namespace cistern::lock_order {
namespace {

struct Lock {
  const char* name;
  const char* does;
};

#define CISTERN_LOCK(rank, lock, does) Lock{lock, does},
#define CISTERN_ONE(rank, lock, does) +1
constexpr std::array kLocks{CISTERN_INNER_LOCKS(CISTERN_LOCK) CISTERN_LEAF_LOCKS(CISTERN_LOCK)};
constexpr int kFirstLeaf = CISTERN_INNER_LOCKS(CISTERN_ONE);
#undef CISTERN_ONE
#undef CISTERN_LOCK

/// The locks that one thread holds: how many locks of each rank, and the last rank of which it
/// holds any.
struct Held {
  std::array<std::uint32_t, kLocks.size()> locks{};
  int last = -1;
};
constinit thread_local Held held;

bool mayTake(LockRank rank) noexcept {
  const bool several = held.locks[std::size_t(LockRank::kSeveralHeaps)] > 0;
  const bool again = several && rank == LockRank::kHeap && held.last == int(rank);
  return again || (held.last < int(rank) && held.last < kFirstLeaf);
}

}  // namespace

void check(LockRank rank) noexcept {
  if (mayTake(rank)) return;
  const Lock &wanted = kLocks[std::size_t(rank)], &has = kLocks[std::size_t(held.last)];
  std::fprintf(stderr,
               "cistern: locks out of order (allocator/base/lock_ranks.hpp): a thread takes %s, "
               "which %s, while it holds %s, which %s\n",
               wanted.name, wanted.does, has.name, has.does);
  std::abort();
}

void taken(LockRank rank) noexcept {
  ++held.locks[std::size_t(rank)];
  if (held.last < int(rank)) held.last = int(rank);
}

void givenUp(LockRank rank) noexcept {
  CISTERN_CHECK(held.locks[std::size_t(rank)] > 0);
  --held.locks[std::size_t(rank)];
  while (held.last >= 0 && held.locks[std::size_t(held.last)] == 0) --held.last;
}

}  // namespace cistern::lock_order

#endif
