// Pinned host memory of the storm's program: the host writes each block when it gets it, and copies
// that complete later check that nobody else has written there since.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "cistern/pinned.hpp"

namespace cistern::storm {

/// A block of the program's, and the word that it holds at both ends.
struct PinnedHeld {
  void* block = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t stamp = 0;
};

struct Pinned {
  explicit Pinned(Device& device) : all(device) {}
  /// Frees what is left. Nothing stays pinned. Pre: nobody else does anything.
  void finish();
  void shelve(const PinnedHeld& held);
  /// One that is the caller's from now on; its block is null when there is none.
  PinnedHeld unshelve(std::uint64_t dice);

  PinnedAllocator all;

 private:
  std::mutex mutex_;
  std::vector<PinnedHeld> shelf_;
};

}  // namespace cistern::storm
