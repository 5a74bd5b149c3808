// What the allocator counts, as a program sees it. How it is counted: statistics/totals.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace cistern {

enum class Stat : std::uint8_t {
  kAllocation,      ///< blocks that the program holds
  kSegment,         ///< device allocations
  kActive,          ///< blocks held, or freed and still used by queued work
  kInactiveSplit,   ///< free blocks of segments that are not wholly free, and that no thread keeps
  kAllocatedBytes,  ///< bytes of blocks held, rounding included
  kReservedBytes,   ///< bytes taken from the device
  kActiveBytes,
  kInactiveSplitBytes,
  kRequestedBytes,  ///< bytes that the program asked for and holds
};
inline constexpr std::size_t kStatCount = 9;

/// Requests up to 1 MiB are small.
enum class SizeKind : std::uint8_t { kSmall, kLarge };
inline constexpr std::size_t kSizeKindCount = 2;

/// "allocated_bytes", as PyTorch spells it.
std::string_view statName(Stat stat);

/// One statistic: freed == allocated - current.
struct StatValue {
  std::int64_t current = 0;
  std::int64_t peak = 0;
  std::int64_t allocated = 0;  ///< all increases since the last resetAccumulatedStats
  std::int64_t freed = 0;      ///< all decreases since then
};

/// What has become of the pages (backing `pages`), counted since the allocator was made.
struct PageCounts {
  std::uint64_t created = 0;   ///< made by the device
  std::uint64_t recycled = 0;  ///< mapped where they were needed, rather than new ones made
  std::uint64_t revived = 0;   ///< taken back into use at an address where they were mapped still
  std::uint64_t retired = 0;   ///< mappings that moved pages had left behind, removed
  std::uint64_t returned = 0;  ///< given back to the device
};

/// A consistent picture of one allocator, taken at one moment.
struct MemoryStats {
  using Values = std::array<StatValue, kStatCount>;
  Values all, small, large;
  std::uint64_t num_alloc_retries = 0;     ///< requests that had to give memory back to go on
  std::uint64_t num_ooms = 0;              ///< OutOfMemory thrown
  std::uint64_t num_sync_all_streams = 0;  ///< times the host waited for queued work
  std::uint64_t num_device_alloc = 0;
  std::uint64_t num_device_free = 0;
  std::uint64_t num_misuses = 0;  ///< wrong frees reported
  PageCounts pages;
  std::uint64_t host_bytes = 0;  ///< host memory that the bookkeeping takes
  /// Whether every peak is exact: so they are as long as one thread allocates. Otherwise those of
  /// all but segments and reserved bytes may be low, by at most 64 KiB and 64 blocks for each
  /// thread that allocates, or twice what its last 64 allocations came to, if that is more.
  bool peaks_exact = true;

  const StatValue& operator[](Stat s) const { return all[std::size_t(s)]; }
};

using StatArray = std::array<std::int64_t, kStatCount>;

}  // namespace cistern
