#include "interop/recording/backed_addresses.hpp"

#include <iterator>

namespace cistern::recording {

const Reserved* ReservedRanges::at(std::uint64_t address) const {
  const auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return nullptr;
  const Reserved& range = std::prev(after)->second;
  return address < range.end ? &range : nullptr;
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
