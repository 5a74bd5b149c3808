#include "allocator/sleep/saved_runs.hpp"

#include <algorithm>

#include "allocator/base/bytes.hpp"
#include "allocator/base/check.hpp"

namespace cistern {
namespace {

/// A larger gap takes longer to copy than a further copy takes to begin: 128 KiB are 2.5 us.
constexpr std::uint64_t kLargestGap = 128 * kKiB;
constexpr std::uint64_t kLiveOfGaps = 20;

/// The addresses between a range and the next.
struct Between {
  std::size_t after;  ///< the index of the range before it
  std::uint64_t bytes;
};

// Those that may be copied along.
std::vector<Between> gapsOf(const std::vector<AddressRange>& live,
                            const std::vector<AddressRange>& within) {
  std::vector<Between> gaps;
  std::size_t at = 0;
  for (std::size_t i = 0; i + 1 < live.size(); ++i) {
    while (within[at].to < live[i].to) ++at;
    const std::uint64_t bytes = live[i + 1].from - live[i].to;
    if (live[i + 1].from < within[at].to && bytes <= kLargestGap) gaps.push_back({i, bytes});
  }
  return gaps;
}

}  // namespace

std::vector<AddressRange> merged(const std::vector<AddressRange>& ranges) {
  std::vector<AddressRange> one;
  for (const AddressRange& range : ranges) {
    if (!one.empty() && one.back().to >= range.from) {
      one.back().to = std::max(one.back().to, range.to);
    } else {
      one.push_back(range);
    }
  }
  return one;
}

std::vector<AddressRange> intersection(const std::vector<AddressRange>& one,
                                       const std::vector<AddressRange>& other) {
  std::vector<AddressRange> both;
  for (std::size_t i = 0, k = 0; i < one.size() && k < other.size();) {
    const Address from = std::max(one[i].from, other[k].from);
    const Address to = std::min(one[i].to, other[k].to);
    if (from < to) both.push_back({from, to});
    one[i].to < other[k].to ? ++i : ++k;
  }
  return both;
}

std::vector<AddressRange> joinedOverGaps(const std::vector<AddressRange>& live,
                                         const std::vector<AddressRange>& within) {
  std::vector<Between> gaps = gapsOf(live, within);
  std::ranges::stable_sort(gaps, {}, &Between::bytes);
  std::vector<bool> joined(live.size(), false);
  std::uint64_t left = bytesOfRanges(live) / kLiveOfGaps;
  for (const Between& gap : gaps) {
    if (gap.bytes > left) break;
    left -= gap.bytes;
    joined[gap.after] = true;
  }
  std::vector<AddressRange> runs;
  for (std::size_t i = 0; i < live.size(); ++i) {
    if (i > 0 && joined[i - 1]) {
      runs.back().to = live[i].to;
    } else {
      runs.push_back(live[i]);
    }
  }
  return runs;
}

std::vector<SavedRun> placedIn(const PinnedChunks& chunks,
                               const std::vector<AddressRange>& ranges) {
  std::vector<SavedRun> runs;
  auto chunk = chunks.begin();
  std::uint64_t used = 0;
  for (AddressRange left : ranges) {
    while (left.from < left.to) {
      CISTERN_CHECK(chunk != chunks.end());
      const std::uint64_t bytes = std::min(left.to - left.from, chunk->bytes - used);
      if (bytes > 0) runs.push_back({left.from, bytes, chunk->at + used});
      left.from += bytes;
      used += bytes;
      if (used == chunk->bytes) ++chunk, used = 0;
    }
  }
  return runs;
}

std::vector<SavedRun> partsIn(const std::vector<SavedRun>& runs,
                              const std::vector<AddressRange>& ranges) {
  std::vector<SavedRun> parts;
  for (std::size_t i = 0, k = 0; i < runs.size() && k < ranges.size();) {
    const Address from = std::max(runs[i].from, ranges[k].from);
    const Address to = std::min(runs[i].to(), ranges[k].to);
    if (from < to) parts.push_back({from, to - from, runs[i].at + (from - runs[i].from)});
    runs[i].to() < ranges[k].to ? ++i : ++k;
  }
  return parts;
}

}  // namespace cistern
