// The allocations of a recording, one record each: what it was, and between which events it lived.
// All analyses begin with them. Read next: columns.hpp, living.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "interop/recording/recording_model.hpp"

namespace cistern::report {

/// An allocation. Event numbers count from 0. Allocation n has number n in the recording's events.
/// Invariant: born < freed <= ended <= the number of events.
struct Life {
  std::uint64_t bytes = 0;    ///< asked for
  std::uint64_t address = 0;  ///< 0: not known
  std::uint32_t born = 0;     ///< the event that allocates it
  std::uint32_t freed = 0;    ///< the event that frees it; the number of events if none does
  std::uint32_t ended = 0;    ///< the event that ends its last use; `freed` if none says so
  std::uint32_t stack = 0;
  std::uint32_t label = 0;
  std::uint32_t pool = 0;
  std::uint32_t stream = 0;
};

/// The most events of a recording: event numbers have 32 bits.
inline constexpr std::uint64_t kMostEvents = UINT32_MAX - 1;

/// In the order of their births. Pre: the recording's invariants; at most kMostEvents events.
std::vector<Life> livesOf(const recording::Recording& recording);

/// The bytes that a block of `bytes` takes, which allocators round up to 512.
std::uint64_t takenBytes(std::uint64_t bytes);

/// Whether the program holds the block after the first `done` events.
inline bool livesAfter(const Life& life, std::uint64_t done) {
  return life.born < done && life.freed >= done;
}
/// Whether the block is freed then, and other streams still use it.
inline bool isPendingAfter(const Life& life, std::uint64_t done) {
  return life.freed < done && life.ended >= done;
}

}  // namespace cistern::report
