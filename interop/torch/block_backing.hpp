// Which living blocks have memory of the device behind all their addresses, as the events of memory
// tell. PyTorch's viewer looks for the segment of each block, and its segments are device memory. A
// block has none while its pool sleeps, and while its memory is the host's (docs/sleep.md,
// docs/overflow.md).
//
// It needs no header of PyTorch's: tests/torch uses it too.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace cistern_torch {

/// Not thread-safe. A block has memory unless an event, or assumeGone, has said otherwise.
class BlockBacking {
 public:
  struct Range {
    std::uint64_t begin = 0, end = 0;
    bool operator==(const Range&) const = default;
  };
  using Addresses = std::vector<std::uint64_t>;

  /// A block lives there. Returns whether it has all its memory.
  bool add(std::uint64_t address, std::uint64_t bytes);
  bool knows(std::uint64_t address) const { return blocks_.contains(address); }
  /// It is free. Returns whether it had all its memory.
  bool remove(std::uint64_t address);
  /// Before the first event: the addresses have no memory of the device.
  void assumeGone(Range range) { gone_.add(range); }

  /// The addresses lose their memory. Returns the blocks that had all of theirs, by address.
  Addresses takeAway(Range range);
  /// The addresses have memory. Returns the blocks that have all of theirs again.
  Addresses bringBack(Range range);
  /// The parts of a range that have memory.
  std::vector<Range> partsOf(Range range) const;
  void clear() { *this = {}; }

 private:
  // Disjoint ranges that do not touch.
  class Ranges {
   public:
    void add(Range range);
    void remove(Range range);
    /// Calls visit(begin, end) for the parts of a range that are in it.
    template <class Visit>
    void forEachIn(Range range, Visit visit) const;
    bool anyIn(Range range) const;

   private:
    std::map<std::uint64_t, std::uint64_t> ends_;  ///< by begin
  };

  template <class Visit>
  void forEachBlockIn(Range range, Visit visit) const;

  std::map<std::uint64_t, std::uint64_t> blocks_;  ///< the ends of living blocks, by address
  Ranges gone_;                                    ///< addresses without memory
};

}  // namespace cistern_torch
