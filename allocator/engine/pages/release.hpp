// Mappings and pages that go: stale mappings whose last use is complete are unmapped, and pages
// that lie wholly free, and that no queued work uses, are given back to the device; at once, or
// later. All of it under the backing's lock.
#pragma once

#include <cstdint>
#include <vector>

#include "allocator/engine/pages/background.hpp"
#include "allocator/engine/pages/ground.hpp"

namespace cistern::pages {

/// Which free pages to give back.
struct ReleaseRule {
  std::uint64_t latest_epoch = UINT64_MAX;  ///< of the heap's: not used later
  std::uint64_t bytes = UINT64_MAX;         ///< until so many are back
  std::uint32_t most_units = UINT32_MAX;    ///< of a page
};

struct Released {
  std::uint64_t bytes = 0;
  bool more_later = false;  ///< some lie free, but queued work may still use them
};

/// Gives free pages of the heap back, the longest unused first.
Released releaseFree(Ground& ground, Heap& heap, const ReleaseRule& rule);
/// Gives spare pages back, until the device refuses one. Returns how many bytes are.
std::uint64_t releaseSpares(Ground& ground) noexcept;

/// What can wait: stale mappings that have become too many, and the pages that emptyCache found
/// still in use. It owns the list of those heaps. The background thread clears up a piece at a
/// time; where there is no thread for it, the next miss does.
class UnmapLater {
 public:
  explicit UnmapLater(Ground& ground) : ground_(ground) {}

  /// More stale mappings than this are too many.
  std::size_t mostStale() const {
    constexpr std::size_t kOfEachPage = 2, kLeast = 64;
    return ground_.table.pages().size() * kOfEachPage + kLeast;
  }
  /// Whether there is anything to clear up.
  bool isDue() const {
    const bool too_many = ground_.table.staleMappings().size() > mostStale();
    return drains() || (too_many && !without(Mechanism::kUnmapLater));
  }
  /// Clears up, if anything is due: all that can go now, or a little, as others may want the lock.
  /// Says what comes next.
  Background::Next clearUp(bool all) noexcept;
  /// What lies free in the heap now goes back to the device when its last use is complete.
  void drainLater(Heap& heap);
  bool drains() const { return !drains_.empty(); }

 private:
  struct Drain {
    Heap* heap;
    std::uint64_t until;
  };
  bool isDrained(const Drain& drain, bool& any);

  Ground& ground_;
  std::vector<Drain> drains_;
};

}  // namespace cistern::pages
