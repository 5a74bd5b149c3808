#include "interop/recording/backed_addresses.hpp"

#include <algorithm>
#include <iterator>

namespace cistern::recording {

const Reserved* ReservedRanges::at(std::uint64_t address) const {
  const auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return nullptr;
  const Reserved& range = std::prev(after)->second;
  return address < range.end ? &range : nullptr;
}

std::uint64_t ReservedRanges::bytesIn(std::uint64_t begin, std::uint64_t end) const {
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

void ReservedRanges::add(const Reserved& range) {
  if (range.begin >= range.end) return;
  remove(range.begin, range.end);
  ranges_.emplace(range.begin, range);
}

void ReservedRanges::remove(std::uint64_t begin, std::uint64_t end) {
  auto at = ranges_.lower_bound(begin);
  if (at != ranges_.begin() && std::prev(at)->second.end > begin) --at;
  while (at != ranges_.end() && at->second.begin < end) {
    const Reserved whole = at->second;
    at = ranges_.erase(at);
    if (whole.begin < begin) {
      Reserved left = whole;
      left.end = begin;
      ranges_.emplace(left.begin, left);
    }
    if (whole.end > end) {
      Reserved right = whole;
      right.begin = end;
      ranges_.emplace(right.begin, right);
      return;
    }
  }
}

}  // namespace cistern::recording
