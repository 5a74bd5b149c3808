#include "allocator/engine/request.hpp"

#include <algorithm>
#include <bit>

namespace cistern {
namespace {

std::uint32_t grainsOrMost(std::uint64_t bytes) {
  return std::uint32_t(std::min<std::uint64_t>(bytes >> kGrainShift, UINT32_MAX));
}

}  // namespace

SizeRules::SizeRules(const Options& options)
    : divisions_(options.roundup_power2_divisions),
      plain_(options.roundup_power2_divisions == RoundupDivisions{}),
      large_segment_(options.large_segment_size),
      max_split_(options.max_split_size),
      max_non_split_rounding_(options.max_non_split_rounding) {}

// Between two powers of two there are `divisions` equal steps; the next step up is taken.
std::uint64_t SizeRules::roundToDivision(std::uint64_t bytes) const {
  const std::uint64_t divisions = divisions_.divisionsFor(bytes);
  if (divisions <= 1 || bytes <= kGrain * divisions) return roundUp(bytes, kGrain);
  if (std::has_single_bit(bytes)) return bytes;
  const std::uint64_t step = std::max(std::bit_floor(bytes) / divisions, kGrain);
  return roundUp(bytes, step);
}

std::uint64_t SizeRules::segmentFor(const Request& request) const {
  if (request.kind == SizeKind::kSmall) return kSmallSegment;
  const std::uint64_t rounded = request.rounded();
  if (rounded < kLargeShared) return std::max(large_segment_, roundUp(rounded, kSegmentUnit));
  return roundUp(rounded, kSegmentUnit);
}

SplitRules SizeRules::splitRules(SizeKind kind) const {
  if (kind == SizeKind::kSmall) return {};
  SplitRules rules;
  rules.min_remainder = grainsOrMost(kSmallLimit) + 1;
  rules.max_split = grainsOrMost(max_split_);
  rules.max_non_split_rounding = grainsOrMost(max_non_split_rounding_);
  return rules;
}

}  // namespace cistern
