// The memory that an allocator has from the device, by address: segments, and the parts of its
// ranges that have pages behind them. The owner guards it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

#include "cistern/types.hpp"

namespace cistern {

struct ReservedRange {
  std::uint64_t bytes = 0;
  Stream stream;
  std::uint32_t pool = 0;  ///< a number of the history's
  bool pages = false;      ///< else a segment
  Location location = Location::kDevice;
};

/// No two ranges overlap.
class ReservedRanges {
 public:
  /// Throws std::bad_alloc, changing nothing but what it takes the place of.
  void add(Address address, const ReservedRange& range) {
    remove(address, range.bytes);
    ranges_.emplace(address, range);
  }
  /// Takes [address, address + bytes) out, which may be parts of ranges. Throws std::bad_alloc.
  void remove(Address address, std::uint64_t bytes) {
    const Address end = address + bytes;
    auto at = ranges_.upper_bound(address);
    if (at != ranges_.begin() && endOf(*std::prev(at)) > address) --at;
    while (at != ranges_.end() && at->first < end) {
      const auto [base, range] = *at;
      const Address range_end = endOf(*at);
      if (range_end > end) addPart(end, range_end, range);
      if (base < address) {
        at->second.bytes = address - base;
        ++at;
      } else {
        at = ranges_.erase(at);
      }
    }
  }
  void clear() noexcept { ranges_.clear(); }
  const std::map<Address, ReservedRange>& all() const { return ranges_; }

 private:
  using Entry = std::map<Address, ReservedRange>::value_type;
  static Address endOf(const Entry& entry) { return entry.first + entry.second.bytes; }
  void addPart(Address from, Address to, ReservedRange like) {
    like.bytes = to - from;
    ranges_.emplace(from, like);
  }

  std::map<Address, ReservedRange> ranges_;
};

}  // namespace cistern
