// Ranges of addresses that do not overlap, such as the memory that an allocator has reserved. The
// owner guards it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace cistern {

/// Range has `begin` and `end`, addresses of std::uint64_t.
template <class Range>
class RangeMap {
 public:
  /// Takes the place of what overlaps it. An empty range changes nothing. Throws std::bad_alloc.
  void add(const Range& range) {
    if (range.begin >= range.end) return;
    remove(range.begin, range.end);
    ranges_.emplace(range.begin, range);
  }
  /// Cuts off what reaches over a border. Throws std::bad_alloc.
  void remove(std::uint64_t begin, std::uint64_t end) {
    auto at = ranges_.lower_bound(begin);
    if (at != ranges_.begin() && std::prev(at)->second.end > begin) --at;
    while (at != ranges_.end() && at->first < end) {
      const Range whole = at->second;
      if (whole.end > end) {
        Range right = whole;
        right.begin = end;
        ranges_.emplace(end, right);
      }
      if (whole.begin < begin) {
        at->second.end = begin;
        ++at;
      } else {
        at = ranges_.erase(at);
      }
    }
  }
  void clear() noexcept { ranges_.clear(); }

  /// The range that an address lies in; null if it lies in none.
  const Range* at(std::uint64_t address) const {
    const auto after = ranges_.upper_bound(address);
    if (after == ranges_.begin()) return nullptr;
    const Range& range = std::prev(after)->second;
    return address < range.end ? &range : nullptr;
  }
  /// The bytes from begin to end that lie in ranges.
  std::uint64_t bytesIn(std::uint64_t begin, std::uint64_t end) const {
    auto range = ranges_.upper_bound(begin);
    if (range != ranges_.begin()) --range;
    std::uint64_t bytes = 0;
    for (; range != ranges_.end() && range->first < end; ++range) {
      const std::uint64_t from = std::max(range->first, begin);
      const std::uint64_t to = std::min(range->second.end, end);
      if (to > from) bytes += to - from;
    }
    return bytes;
  }
  /// By begin.
  const std::map<std::uint64_t, Range>& all() const { return ranges_; }

 private:
  std::map<std::uint64_t, Range> ranges_;
};

}  // namespace cistern
