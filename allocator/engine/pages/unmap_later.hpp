// What can wait: stale mappings that have become too many, and the pages that emptyCache found
// still in use. It owns the list of those heaps. The background thread clears up a piece at a time;
// where there is no thread for it, the next miss does. Under the backing's lock.
#pragma once

#include <vector>

#include "allocator/engine/pages/background.hpp"
#include "allocator/engine/pages/ground.hpp"

namespace cistern::pages {

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
    if (without(Mechanism::kUnmapLater)) return drains();
    return drains() || ground_.table.staleMappings() > mostStale();
  }
  /// Clears up all that can go now, if anything is due.
  void unmapAll() noexcept;
  /// Clears up a little, as others may want the lock. Says what comes next.
  Background::Next unmapSome() noexcept;
  /// What lies free in the heap now goes back to the device when its last use is complete.
  void drainLater(Heap& heap);
  bool drains() const { return !drains_.empty(); }

 private:
  struct Drain {
    Heap* heap;
    EpochMark until;
  };
  bool drain();
  bool isDrained(const Drain& drain, bool& any);

  Ground& ground_;
  std::vector<Drain> drains_;
};

}  // namespace cistern::pages
