// What the allocator counts, and how it stays exact without a shared counter.
//
// Every heap counts for itself, under its own lock; a reader takes all the locks and adds up.
// Peaks of a sum cannot be added up, so each heap also has ceilings, handed out so that
//
//   sum over heaps of ceiling[s]  <=  peak[s] + what lies in caches    for every statistic s
//   current[s] <= ceiling[s] in every heap           between operations
//
// and hence the total cannot have passed the recorded peak. A heap that would pass a ceiling asks
// for a settlement (settling.cpp), which looks at all heaps at once, raises the peak if the total
// has really passed it, and deals out what lies between. Below its peak a program never gets there.
//
// Threads that allocate on several streams at once near their common peak would settle all the
// time, and hold each other still. When two of them get in each other's way, ceilings are no longer
// dealt but kept: each heap may go as high as it has been before without asking. From then on
// (until resetPeakStats) the peaks of what a hit changes are those of the moments that were looked
// at: each read of the statistics, each miss before which other threads' caches were had back, and,
// where it has taken a heap higher than ever, what follows a miss. They may be too low by what the
// heaps' highs did not coincide; peaks of segments and reserved bytes stay exact, because no hit
// changes those.
//
// To a heap what lies in a thread's cache is busy; the program has let go of it, and a settlement
// counts it as that. Free pieces are counted as the heap has them, between blocks in caches too.
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
  kInactiveSplit,   ///< free blocks of segments that are not wholly free
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
  /// Whether every peak is exact; else those of all but segments and reserved bytes may be low.
  bool peaks_exact = true;

  const StatValue& operator[](Stat s) const { return all[std::size_t(s)]; }
};

using StatArray = std::array<std::int64_t, kStatCount>;

/// Segments and reserved bytes: their ceilings are dealt always.
constexpr bool noHitChanges(std::size_t stat) {
  return Stat(stat) == Stat::kSegment || Stat(stat) == Stat::kReservedBytes;
}

/// One heap's share of the statistics. Guarded by the heap's lock.
struct HeapCounters {
  std::array<StatArray, kSizeKindCount> current{};  ///< with `allocated`, brought up to date
  std::array<StatArray, kSizeKindCount> allocated{};
  /// Of `current`, what lay in threads' caches when all were looked at last.
  std::array<StatArray, kSizeKindCount> cached{};
  /// Ceilings for small, for large, and for both together.
  std::array<StatArray, kSizeKindCount + 1> ceiling{};

  /// A real increase or decrease.
  void change(SizeKind kind, Stat stat, std::int64_t by) {
    current[std::size_t(kind)][std::size_t(stat)] += by;
    if (by > 0) allocated[std::size_t(kind)][std::size_t(stat)] += by;
  }
  /// What moves to or from another heap is neither allocated nor freed.
  void move(SizeKind kind, Stat stat, std::int64_t by) {
    current[std::size_t(kind)][std::size_t(stat)] += by;
  }
  /// Where this heap has been it may go again, but for what no hit changes.
  void raiseCeilings() {
    for (std::size_t s = 0; s < kStatCount; ++s) {
      if (noHitChanges(s)) continue;
      for (std::size_t kind = 0; kind < kSizeKindCount; ++kind) {
        ceiling[kind][s] = std::max(ceiling[kind][s], current[kind][s]);
      }
      ceiling[kSizeKindCount][s] = std::max(ceiling[kSizeKindCount][s], both(s));
    }
  }
  std::int64_t both(std::size_t stat) const { return current[0][stat] + current[1][stat]; }
  /// Whether a ceiling that concerns this kind is passed.
  bool overCeiling(SizeKind kind) const {
    const StatArray& own = current[std::size_t(kind)];
    const StatArray& own_ceiling = ceiling[std::size_t(kind)];
    std::int64_t signs = 0;
    for (std::size_t s = 0; s < kStatCount; ++s) {
      signs |= own_ceiling[s] - own[s];
      signs |= ceiling[kSizeKindCount][s] - current[0][s] - current[1][s];
    }
    return signs < 0;
  }
};

}  // namespace cistern
