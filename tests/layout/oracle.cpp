#include "tests/layout/oracle.hpp"

#include <algorithm>
#include <iterator>

namespace cistern::test {

void Oracle::add(const Segment& segment, std::uint32_t epoch) {
  segments_[segment.base] = segment.end();
  const auto granules = std::uint32_t(segment.bytes >> kGranuleShift);
  setFree(ranges_.insert({segment.base, Range{granules, epoch, false}}).first, true);
}

void Oracle::remove(const Segment& segment) {
  const auto range = ranges_.find(segment.base);
  setFree(range, false);
  ranges_.erase(range);
  segments_.erase(segment.base);
}

bool Oracle::splits(std::uint32_t whole, std::uint32_t granules) const {
  return whole < rules_.max_split && whole > granules && whole - granules >= rules_.min_remainder;
}

std::optional<std::pair<Address, std::uint32_t>> Oracle::allocate(std::uint32_t granules) {
  const auto best = best_fit_.lower_bound({granules, 0});
  if (best == best_fit_.end()) return std::nullopt;
  const auto [whole, address] = *best;
  if (whole >= rules_.max_split &&
      (granules < rules_.max_split || whole - granules > rules_.max_non_split_rounding)) {
    return std::nullopt;
  }
  const auto range = ranges_.find(address);
  setFree(range, false);
  if (splits(whole, granules)) {
    range->second.granules = granules;
    const Range rest{whole - granules, range->second.epoch, false};
    setFree(ranges_.insert({endOf(range), rest}).first, true);
  }
  return std::pair(address, range->second.granules);
}

Address Oracle::release(Address address, std::uint32_t epoch) {
  auto range = ranges_.find(address);
  range->second.epoch = epoch;
  const auto next = std::next(range);
  if (next != ranges_.end() && next->second.free && !segments_.contains(next->first)) {
    merge(range, next);
  }
  if (range != ranges_.begin() && !segments_.contains(address)) {
    const auto prev = std::prev(range);
    if (prev->second.free) {
      merge(prev, range);
      range = prev;
    }
  }
  setFree(range, true);
  return range->first;
}

void Oracle::setFree(Ranges::iterator r, bool free) {
  r->second.free = free;
  if (free) {
    best_fit_.insert({r->second.granules, r->first});
  } else {
    best_fit_.erase({r->second.granules, r->first});
  }
}

void Oracle::merge(Ranges::iterator lower, Ranges::iterator upper) {
  setFree(lower, false);
  setFree(upper, false);
  lower->second.granules += upper->second.granules;
  lower->second.epoch = std::max(lower->second.epoch, upper->second.epoch);
  ranges_.erase(upper);
}

bool Oracle::whollyFree(const Segment& segment) const {
  const auto range = ranges_.find(segment.base);
  return range->second.free && endOf(range) == segment.end();
}

LayoutTotals Oracle::totals() const {
  LayoutTotals t;
  t.segments = segments_.size();
  for (const auto& [base, end] : segments_) t.segment_bytes += end - base;
  for (auto r = ranges_.begin(); r != ranges_.end(); ++r) {
    const std::uint64_t bytes = endOf(r) - r->first;
    const auto segment = segments_.find(r->first);
    const bool whole = segment != segments_.end() && segment->second == endOf(r);
    if (!r->second.free) {
      ++t.busy_blocks;
      t.busy_bytes += bytes;
    } else if (!whole) {
      ++t.split_free_blocks;
      t.split_free_bytes += bytes;
    }
  }
  return t;
}

}  // namespace cistern::test
