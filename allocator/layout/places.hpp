// Places for segments in the order of their age. A layout uses a place as Segment::base.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <new>

#include "allocator/base/bytes.hpp"

namespace cistern {

/// Hands out stretches of [begin, end), each behind the last. Once the end is reached it starts
/// over, and skips stretches that are still taken. The order of age then stays right for most.
class Places {
 public:
  /// Pre: 0 < begin <= end.
  Places(Address begin, Address end) : begin_(begin), end_(end), next_(begin) {}

  /// A stretch that overlaps no taken one. Throws std::bad_alloc, also when none is left.
  Address take(std::uint64_t bytes) {
    bool again = false;
    for (Address at = next_;;) {
      if (end_ - at < bytes) {
        if (again) throw std::bad_alloc();
        again = true;
        at = begin_;
      }
      const auto above = taken_.upper_bound(at);
      const bool inside = above != taken_.begin() && std::prev(above)->second > at;
      if (inside || (above != taken_.end() && above->first - at < bytes)) {
        at = inside ? std::prev(above)->second : above->second;
        continue;
      }
      taken_.emplace_hint(above, at, at + bytes);
      next_ = at + bytes;
      return at;
    }
  }
  /// No-op for a place that was never taken.
  void free(Address place) noexcept { taken_.erase(place); }
  /// As far from the end as the stretch is from the beginning: the youngest first.
  Address mirrored(Address place, std::uint64_t bytes) const {
    return begin_ + (end_ - place) - bytes;
  }

 private:
  const Address begin_, end_;
  std::map<Address, Address> taken_;  ///< where each begins, and ends
  Address next_;
};

}  // namespace cistern
