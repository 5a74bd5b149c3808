// Which addresses have device memory behind them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>

namespace cistern::recording {

/// Reserved addresses from begin to end, of one segment or of pages in one.
struct Reserved {
  std::uint64_t begin = 0, end = 0;
  std::uint32_t stream = 0;
  std::uint32_t pool = 0;
  bool expandable = false;
};

/// The end of so many bytes, or the last address if they reach beyond it.
inline std::uint64_t endOf(std::uint64_t begin, std::uint64_t bytes) {
  return begin + std::min(bytes, std::numeric_limits<std::uint64_t>::max() - begin);
}

/// Ranges do not overlap.
class ReservedRanges {
 public:
  /// Takes the place of what overlaps it. An empty range changes nothing.
  void add(const Reserved& range);
  /// Cuts off what reaches over a border.
  void remove(std::uint64_t begin, std::uint64_t end);
  /// The range that an address lies in; null if it lies in none.
  const Reserved* at(std::uint64_t address) const;
  /// The bytes from begin to end that lie in ranges.
  std::uint64_t bytesIn(std::uint64_t begin, std::uint64_t end) const;
  /// By begin.
  const std::map<std::uint64_t, Reserved>& all() const { return ranges_; }

 private:
  std::map<std::uint64_t, Reserved> ranges_;
};

}  // namespace cistern::recording
