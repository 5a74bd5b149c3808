#include "allocator/engine/heap/request.hpp"

#include <algorithm>
#include <bit>

namespace cistern {
namespace {

std::uint32_t granulesOrMost(std::uint64_t bytes) {
  return std::uint32_t(std::min<std::uint64_t>(bytes >> kGranuleShift, UINT32_MAX));
}

}  // namespace

SizeRules::SizeRules(const Options& options, bool no_split)
    : options_(options),
      no_split_(no_split),
      plain_(options.roundup_power2_divisions == RoundupDivisions{} &&
             (inPages() || options.max_split_size == kUnlimited)) {}

// A segment of max_split and above serves no smaller request. One that is smaller, but whose
// segment is not, is therefore placed as if it were as large.
std::uint64_t SizeRules::roundByOptions(std::uint64_t bytes) const {
  const std::uint64_t rounded = roundToDivision(bytes);
  if (inPages()) return rounded;
  const std::uint64_t whole = roundDown(options_.max_split_size, kGranule);
  return rounded < whole && roundUp(rounded, kSegmentUnit) >= whole ? whole : rounded;
}

// Between two powers of two there are `divisions` equal steps; the next step up is taken.
std::uint64_t SizeRules::roundToDivision(std::uint64_t bytes) const {
  const std::uint64_t divisions = options_.roundup_power2_divisions.divisionsFor(bytes);
  if (divisions <= 1 || bytes <= kGranule * divisions) return roundUp(bytes, kGranule);
  if (std::has_single_bit(bytes)) return bytes;
  const std::uint64_t step = std::max(std::bit_floor(bytes) / divisions, kGranule);
  return roundUp(bytes, step);
}

std::uint64_t SizeRules::segmentFor(const Request& request) const {
  if (request.kind == SizeKind::kSmall) return kSmallSegment;
  const std::uint64_t rounded = request.rounded();
  if (no_split_) return roundUp(rounded, kSegmentUnit);
  const bool shared = rounded < options_.large_segment_size / 2 &&
                      options_.large_segment_size < roundDown(options_.max_split_size, kGranule);
  return shared ? options_.large_segment_size : roundUp(rounded, kSegmentUnit);
}

SplitRules SizeRules::splitRules(SizeKind kind) const {
  if (no_split_) return {1, 1, UINT32_MAX};
  SplitRules rules;
  rules.preserve_wilderness = inPages() && kind == SizeKind::kLarge;
  if (inPages() || kind == SizeKind::kSmall) return rules;
  rules.min_remainder = granulesOrMost(kSmallLimit) + 1;
  rules.max_split = granulesOrMost(options_.max_split_size);
  rules.max_non_split_rounding = granulesOrMost(options_.max_non_split_rounding);
  return rules;
}

}  // namespace cistern
