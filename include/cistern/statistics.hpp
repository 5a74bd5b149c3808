// An allocator's state as a program sees it, for people and for tools. It consists of the
// allocator's counts, and of every segment and block. How they are counted:
// allocator/engine/statistics.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cistern/types.hpp"

namespace cistern {

enum class Stat : std::uint8_t {
  kAllocation,      ///< blocks that the program holds
  kSegment,         ///< device allocations
  kActive,          ///< blocks held, or freed and still used by queued work
  kInactiveSplit,   ///< free blocks of segments that are not wholly free, and that no thread keeps
  kAllocatedBytes,  ///< bytes of blocks held, rounding included
  kReservedBytes,   ///< bytes taken from the device; pages of host memory are counted apart
  kActiveBytes,
  kInactiveSplitBytes,
  kRequestedBytes,  ///< bytes that the program asked for and holds
};
inline constexpr std::size_t kStatCount = 9;

/// Requests up to 1 MiB are small.
enum class SizeKind : std::uint8_t { kSmall, kLarge };
inline constexpr std::array kSizeKinds{SizeKind::kSmall, SizeKind::kLarge};
inline constexpr std::size_t kSizeKindCount = kSizeKinds.size();

/// "allocated_bytes", as PyTorch spells it.
CISTERN_API std::string_view statName(Stat stat);

/// One statistic: freed == allocated - current, until the accumulated counts are reset.
struct StatValue {
  std::int64_t current = 0;
  std::int64_t peak = 0;
  std::int64_t allocated = 0;  ///< all increases since the last resetAccumulatedStats
  std::int64_t freed = 0;      ///< all decreases since the last resetAccumulatedStats
};

/// The fates of the pages (backing `pages`), counted since the allocator was made. All are 0 if its
/// memory is segments.
struct PageCounts {
  std::uint64_t created = 0;   ///< made by the device
  std::uint64_t recycled = 0;  ///< mapped where they were needed, rather than new ones made
  std::uint64_t revived = 0;   ///< taken back into use at an address where they were still mapped
  std::uint64_t retired = 0;   ///< mappings that moved pages had left behind, removed
  std::uint64_t returned = 0;  ///< given back to the device
  std::uint64_t freezes = 0;   ///< times that a heap whose pages found no rest gave up moving them
};

/// A consistent picture of one allocator, taken at one moment.
struct MemoryStats {
  using Values = std::array<StatValue, kStatCount>;
  Values all, small_pool, large_pool;   ///< named as in PyTorch: requests up to 1 MiB, and others
  std::uint64_t num_alloc_retries = 0;  ///< requests that had to give memory back to go on
  std::uint64_t num_ooms = 0;           ///< OutOfMemory thrown
  std::uint64_t num_sync_all_streams = 0;  ///< times the host waited for queued work
  std::uint64_t num_device_alloc = 0;
  std::uint64_t num_device_free = 0;
  std::uint64_t num_misuses = 0;  ///< wrong frees reported
  PageCounts pages{};
  /// The host's time in ns in the calls that make, move and give back pages and segments, since the
  /// device was opened: Device::memoryCallNanoseconds. The background thread's calls count, too.
  std::uint64_t memory_call_ns = 0;
  std::uint64_t host_bytes = 0;         ///< host memory that the bookkeeping takes
  std::uint64_t asleep_bytes = 0;       ///< device memory that pools take when they wake
  std::uint64_t asleep_host_bytes = 0;  ///< pinned host memory for sleep: in use, or kept
  /// Whole pages and segments that CachingAllocator::hold keeps in place, each counted once. The
  /// memory of a pool that is held as a whole (Pools::hold) is not among it.
  std::uint64_t held_bytes = 0;
  /// Host memory in pages: of pools whose location is kHost, and of overflow. No part of reserved
  /// bytes, nor of the allocator's limit.
  std::uint64_t host_page_bytes = 0;
  /// Bytes of blocks held there. They are a part of allocated bytes.
  std::uint64_t host_page_allocated_bytes = 0;
  /// Whether every peak is exact. They are exact as long as one thread allocates. Otherwise all
  /// peaks except those of segments and reserved bytes may be low. They are low by at most 1/8192
  /// of the device (10 MiB of 80 GiB) for each thread that allocates. If 1/128 of the peak is more,
  /// they are low by at most that for all threads together. Peaks of blocks and of requested bytes
  /// may also be high, at most by what threads' caches keep.
  bool peaks_exact = true;

  const StatValue& operator[](Stat s) const { return all[std::size_t(s)]; }
};

/// One number, by name: for a log or a monitor.
struct StatRow {
  std::string name;  ///< "allocated_bytes.all.peak"
  std::int64_t value = 0;

  friend bool operator==(const StatRow& a, const StatRow& b) {
    return a.name == b.name && a.value == b.value;
  }
  friend bool operator!=(const StatRow& a, const StatRow& b) { return !(a == b); }
};

/// Every number in `stats`. Names and their order are always the same.
CISTERN_API std::vector<StatRow> statRows(const MemoryStats& stats);

/// The rows as one JSON object on one line.
CISTERN_API std::string toJson(const std::vector<StatRow>& rows);

/// The cached memory at this moment, in bytes.
struct CacheInfo {
  std::uint64_t free_bytes = 0;
  std::uint64_t largest_free_block = 0;
};

/// The device allocation that a block lies in.
struct BaseAllocation {
  void* base = nullptr;
  std::size_t bytes = 0;
};

// ---- Every segment and block -------------------------------------------------------------------

/// The use of a part of a segment.
enum class BlockUse : std::uint8_t {
  kAllocated,  ///< the program has it
  kPending,    ///< freed, but queued work of other streams still uses it
  kFree,       ///< includes what threads keep for themselves
  kUnmapped,   ///< addresses with no memory behind them
  kAsleep,     ///< the program has it, and some of its memory is away: its pool sleeps
};

/// "allocated", "pending", "free", "unmapped", "asleep".
CISTERN_API const char* blockUseName(BlockUse use);

struct SnapshotBlock {
  Address address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t requested = 0;  ///< as asked; 0 for what is neither allocated nor pending
  Stream stream;                ///< that it was requested on; the segment's for what nobody has
  BlockUse use = BlockUse::kFree;
  std::uint64_t on_host = 0;  ///< bytes of it that lie in the host's memory
  std::uint64_t away = 0;     ///< bytes of it with no memory behind them
};

/// One allocation of the device, or a range of addresses with pages behind what is not unmapped.
struct SnapshotSegment {
  Address address = 0;
  std::uint64_t bytes = 0;
  MempoolId_t pool;  ///< {0, 0}: the default pool
  Stream stream;
  SizeKind kind = SizeKind::kSmall;       ///< of the requests that it serves
  bool in_pages = false;                  ///< a range of addresses
  std::uint64_t number = 0;               ///< as segments came, from 0; a range of addresses: 0
  Location location = Location::kDevice;  ///< where memory is made for it; some may lie elsewhere
  std::vector<SnapshotBlock> blocks;      ///< by address; they cover the segment
};

/// All memory of an allocator. Addresses that a gone pool or stream has left, with nothing behind
/// them, are no part of it.
struct Snapshot {
  std::string device;                     ///< "sim device 0 (simulated device)"
  std::vector<SnapshotSegment> segments;  ///< by address
};

/// The snapshot as one JSON object. docs/c-api.md describes its fields.
CISTERN_API std::string snapshotJson(const Snapshot& snapshot);

}  // namespace cistern
