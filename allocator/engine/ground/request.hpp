// Turns a request for bytes into its rounded size, whether it is small or large, and the segment
// that growth would make for it. The rules are PyTorch's (behaviour its users know), each with the
// option that changes it.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>

#include "allocator/base/bytes.hpp"
#include "allocator/layout/layout.hpp"
#include "cistern/options.hpp"
#include "cistern/statistics.hpp"
#include "cistern/types.hpp"

namespace cistern {

inline constexpr std::uint64_t kSmallLimit = kMiB;        ///< the largest small request
inline constexpr std::uint64_t kSmallSegment = 2 * kMiB;  ///< the segment that small ones share
inline constexpr std::uint64_t kSegmentUnit = 2 * kMiB;   ///< segments are multiples of it
inline constexpr std::uint64_t kLargestRequest = kTiB;    ///< above it nothing is ever tried

class Pool;

/// A capture that is under way into a pool, as the rooms below capture/ know it.
struct Capture {
  /// Bytes of pages that were moved for it. Guarded by the pages' lock.
  std::atomic<std::uint64_t> moved{0};
};

struct Request {
  std::uint64_t bytes = 0;     ///< as asked
  std::uint32_t granules = 0;  ///< rounded
  SizeKind kind = SizeKind::kSmall;
  Stream stream;
  Pool* pool = nullptr;        ///< where it is placed
  Capture* capture = nullptr;  ///< the capture that it is part of, or null
  std::uint32_t part = 0;      ///< of the capture: its number, which marks the block; 0 without
                               ///< a capture; kLent if a lending pool gives the block
  bool overflow = false;       ///< it is placed in host memory, as the device is full
  /// Granules that may lie between the start of free memory and the next multiple of the alignment.
  /// The block is placed at that multiple, and what lies before it stays free.
  std::uint32_t slack = 0;

  /// Stands in place of a capture's number. The block is on loan from a lending pool to the default
  /// pool.
  static constexpr std::uint32_t kLent = UINT32_MAX;

  std::uint64_t rounded() const { return std::uint64_t{granules} << kGranuleShift; }
  /// Free memory of so many granules serves it, wherever that begins.
  std::uint32_t enough() const { return granules + slack; }
  std::uint64_t alignment() const { return std::uint64_t{slack + 1} << kGranuleShift; }
};

/// The same request for a multiple of the alignment. Pre: a power of two, of 512 at least.
inline Request aligned(Request request, std::uint64_t alignment) {
  request.slack = std::uint32_t(alignment >> kGranuleShift) - 1;
  if (bytesOf(request.enough()) > kSmallLimit) request.kind = SizeKind::kLarge;
  return request;
}

/// The sizes an allocator works with; constant once made.
class SizeRules {
 public:
  /// The way that memory comes: as the option says; in segments in any case; or in a segment for
  /// each block.
  enum class Place : std::uint8_t { kAsOption, kSegments, kOwnSegments };
  explicit SizeRules(const Options& options, Place place = Place::kAsOption)
      : options_(options),
        place_(place),
        plain_(options.roundup_power2_divisions == RoundupDivisions{} &&
               (inPages() || options.max_split_size == kUnlimited)) {}

  /// Whether every request is just rounded up to a granule.
  bool plain() const { return plain_; }
  /// Pre: 0 < bytes <= kLargestRequest.
  Request request(std::uint64_t bytes, Stream stream, Pool* pool) const {
    const std::uint64_t rounded = plain_ ? roundUp(bytes, kGranule) : roundByOptions(bytes);
    return {bytes, std::uint32_t(rounded >> kGranuleShift),
            rounded <= kSmallLimit ? SizeKind::kSmall : SizeKind::kLarge, stream, pool};
  }
  /// The size of the segment that a request makes when no free block serves it.
  /// `wide`: wherever that begins.
  std::uint64_t segmentFor(const Request& request, bool wide = false) const {
    if (request.kind == SizeKind::kSmall) return kSmallSegment;
    const std::uint64_t rounded = bytesOf(wide ? request.enough() : request.granules);
    if (noSplit()) return roundUp(rounded, kSegmentUnit);
    const bool shared = rounded < options_.large_segment_size / 2 &&
                        options_.large_segment_size < roundDown(options_.max_split_size, kGranule);
    return shared ? options_.large_segment_size : roundUp(rounded, kSegmentUnit);
  }
  /// Whether each block has a segment of its own.
  bool noSplit() const { return place_ == Place::kOwnSegments; }
  SplitRules splitRules(SizeKind kind) const {
    if (noSplit()) return {1, 1, UINT32_MAX};
    SplitRules rules;
    rules.preserve_wilderness = inPages() && kind == SizeKind::kLarge;
    if (inPages() || kind == SizeKind::kSmall) return rules;
    rules.min_remainder = granulesOrMost(kSmallLimit) + 1;
    rules.max_split = granulesOrMost(options_.max_split_size);
    rules.max_non_split_rounding = granulesOrMost(options_.max_non_split_rounding);
    return rules;
  }

 private:
  static std::uint32_t granulesOrMost(std::uint64_t bytes) {
    return std::uint32_t(std::min<std::uint64_t>(bytes >> kGranuleShift, UINT32_MAX));
  }
  // Segments of max_split and above serve no smaller request. So a smaller request whose segment
  // would reach max_split is rounded up to max_split. Out of line, as few options ask for it.
  [[gnu::noinline]] std::uint64_t roundByOptions(std::uint64_t bytes) const {
    const std::uint64_t rounded = roundToDivision(bytes);
    if (inPages()) return rounded;
    const std::uint64_t whole = roundDown(options_.max_split_size, kGranule);
    return rounded < whole && roundUp(rounded, kSegmentUnit) >= whole ? whole : rounded;
  }
  // Between two powers of two there are `divisions` equal steps; the next step up is taken.
  std::uint64_t roundToDivision(std::uint64_t bytes) const {
    const std::uint64_t divisions = options_.roundup_power2_divisions.divisionsFor(bytes);
    if (divisions <= 1 || bytes <= kGranule * divisions) return roundUp(bytes, kGranule);
    if (std::has_single_bit(bytes)) return bytes;
    const std::uint64_t step = std::max(std::bit_floor(bytes) / divisions, kGranule);
    return roundUp(bytes, step);
  }

  /// Whether blocks are carved exactly, whatever their size.
  bool inPages() const { return options_.backing == Backing::kPages && place_ != Place::kSegments; }

  const Options options_;
  const Place place_;
  const bool plain_;  ///< no divisions and no largest split: round to the granule
};

}  // namespace cistern
