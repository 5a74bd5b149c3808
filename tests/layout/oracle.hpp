// What a layout must do, said as plainly as it can be: ranges in a map, free ones also in a set in
// best-fit order. No bins, no records, no hash.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "allocator/layout/layout.hpp"

namespace cistern::test {

class Oracle {
 public:
  explicit Oracle(SplitRules rules = {}) : rules_(rules) {}

  void add(const Segment& segment, std::uint32_t epoch);
  /// Pre: the segment is wholly free.
  void remove(const Segment& segment);
  /// Where the block must be placed, and how large it is; nothing when no free range may serve.
  std::optional<std::pair<Address, std::uint32_t>> allocate(std::uint32_t granules);
  /// Where the free range starts that the block becomes part of.
  Address release(Address address, std::uint32_t epoch);

  bool whollyFree(const Segment& segment) const;
  std::uint32_t granulesAt(Address address) const { return ranges_.at(address).granules; }
  std::uint32_t epochAt(Address address) const { return ranges_.at(address).epoch; }
  LayoutTotals totals() const;

 private:
  struct Range {
    std::uint32_t granules;
    std::uint32_t epoch;
    bool free;
  };
  using Ranges = std::map<Address, Range>;

  static Address endOf(Ranges::const_iterator r) {
    return r->first + (std::uint64_t{r->second.granules} << kGranuleShift);
  }
  bool splits(std::uint32_t whole, std::uint32_t granules) const;
  void setFree(Ranges::iterator r, bool free);
  void merge(Ranges::iterator lower, Ranges::iterator upper);

  SplitRules rules_;
  Ranges ranges_;
  std::set<std::pair<std::uint32_t, Address>> best_fit_;  ///< size, address of each free range
  std::map<Address, Address> segments_;                   ///< base, end
};

}  // namespace cistern::test
