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
    : divisions_(options.roundup_power2_divisions),
      no_split_(no_split),
      pages_(options.backing == Backing::kPages),
      plain_(options.roundup_power2_divisions == RoundupDivisions{} &&
             (pages_ || options.max_split_size == kUnlimited)),
      large_segment_(options.large_segment_size),
      max_split_(options.max_split_size),
      max_non_split_rounding_(options.max_non_split_rounding) {}

// A segment of max_split and above serves no smaller request. One that is smaller, but whose
// segment is not, is therefore placed as if it were as large.
std::uint64_t SizeRules::roundByOptions(std::uint64_t bytes) const {
  const std::uint64_t rounded = roundToDivision(bytes);
  if (pages_) return rounded;
  const std::uint64_t whole = roundDown(max_split_, kGranule);
  return rounded < whole && roundUp(rounded, kSegmentUnit) >= whole ? whole : rounded;
}

// Between two powers of two there are `divisions` equal steps; the next step up is taken.
std::uint64_t SizeRules::roundToDivision(std::uint64_t bytes) const {
  const std::uint64_t divisions = divisions_.divisionsFor(bytes);
  if (divisions <= 1 || bytes <= kGranule * divisions) return roundUp(bytes, kGranule);
  if (std::has_single_bit(bytes)) return bytes;
  const std::uint64_t step = std::max(std::bit_floor(bytes) / divisions, kGranule);
  return roundUp(bytes, step);
}

std::uint64_t SizeRules::segmentFor(const Request& request) const {
  if (request.kind == SizeKind::kSmall) return kSmallSegment;
  const std::uint64_t rounded = request.rounded();
  if (no_split_) return roundUp(rounded, kSegmentUnit);
  const bool shared =
      rounded < large_segment_ / 2 && large_segment_ < roundDown(max_split_, kGranule);
  return shared ? large_segment_ : roundUp(rounded, kSegmentUnit);
}

SplitRules SizeRules::splitRules(SizeKind kind) const {
  if (no_split_) return {1, 1, UINT32_MAX};
  SplitRules rules;
  rules.preserve_wilderness = pages_ && kind == SizeKind::kLarge;
  if (pages_ || kind == SizeKind::kSmall) return rules;
  rules.min_remainder = granulesOrMost(kSmallLimit) + 1;
  rules.max_split = granulesOrMost(max_split_);
  rules.max_non_split_rounding = granulesOrMost(max_non_split_rounding_);
  return rules;
}

}  // namespace cistern
