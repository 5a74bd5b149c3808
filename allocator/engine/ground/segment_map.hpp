// Leads from any device address to the segment that covers it, without a lock. A lookup loads one
// table word if one range owns the address's aligned 16 GiB for good, two if it owns the aligned
// 32 MiB. Elsewhere it loads three or four.
//
// The table has cells of 2 MiB, in three levels. The last level is small, so that a range of
// addresses here and there costs little. The first is for 57 bits of address. A cell names up to
// two segments. Segments are at least 2 MiB long but need not
// be aligned, so one may end where another begins. A range may own addresses for good. Then a word
// of the first level says so for 16 GiB at once, or a word of the second for 32 MiB. This spares a
// load of the cell, which is seldom in the processor's cache with a million live blocks.
//
// Readers are lock-free. They do not read the segment's record, as it may be reused for another
// segment during the lookup. Writers take the map's own lock. Records are never freed before the
// map, so an answer that is outdated is still a record. Its heap, under its lock, says whether it
// owns the address.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/engine/ground/holds.hpp"
#include "allocator/layout/block.hpp"
#include "cistern/types.hpp"

namespace cistern {

struct HeapSegment;

/// The process has no addresses left for a map.
class NoAddresses : public std::bad_alloc {
 public:
  /// Says how many bytes of addresses were asked for.
  explicit NoAddresses(std::uint64_t bytes) noexcept;
  const char* what() const noexcept override { return text_.data(); }

 private:
  std::array<char, 192> text_{};  ///< no host memory is needed to tell
};

class SegmentMap {
 public:
  static constexpr unsigned kCellShift = 21;

  /// Throws NoAddresses.
  SegmentMap();
  ~SegmentMap();

  /// The segment that covers `address`; null, or one that lies near it, when none does.
  HeapSegment* find(Address address) const noexcept;
  /// False, changing nothing, if a segment here has some of the addresses, or owns them. Pre: the
  /// range is at least 2 MiB long and below 2^57. Throws std::bad_alloc, NoAddresses among it,
  /// changing nothing.
  bool insert(HeapSegment& segment);
  void erase(HeapSegment& segment) noexcept;
  /// Lets `segment` cover [from, to) of the device's addresses too. They lie in a range that is its
  /// own for as long as this map lives. Pre: all are multiples of a cell, and nothing else covers
  /// any of the range. Throws std::bad_alloc; then some of it may be covered.
  void extend(HeapSegment& segment, AddressRange own, Address from, Address to);
  std::size_t hostBytes() const noexcept { return host_bytes_.load(std::memory_order_relaxed); }

 private:
  static constexpr unsigned kLeafShift = 4;  ///< a leaf: 16 cells, 32 MiB, 256 B of host
  static constexpr std::uint64_t kLeafCells = std::uint64_t{1} << kLeafShift;
  static constexpr unsigned kBranchShift = 9;  ///< a branch: 512 leaves, 16 GiB, 4 KiB
  static constexpr unsigned kAddressBits = 57;
  static constexpr std::uint64_t kCells = std::uint64_t{1} << (kAddressBits - kCellShift);
  static constexpr std::size_t kRootBytes =
      (kCells >> kLeafShift >> kBranchShift) * sizeof(std::uintptr_t);
  struct Cell {
    std::atomic<HeapSegment*> at_start{nullptr};  ///< covers the cell's first byte
    std::atomic<std::uint64_t> within{0};         ///< begins further in: where, and its record
  };
  using Leaf = std::array<Cell, std::size_t{1} << kLeafShift>;
  static constexpr Address kLeafBytes = Address{1} << (kCellShift + kLeafShift);
  static constexpr Address kBranchBytes = kLeafBytes << kBranchShift;
  /// A word of the first two levels: 0, the address of a branch or a leaf, or a segment's with the
  /// lowest bit set.
  using Word = std::uintptr_t;
  static constexpr Word kWhole = 1;
  using Branch = std::array<std::atomic<Word>, std::size_t{1} << kBranchShift>;
  static_assert(alignof(Leaf) > kWhole && alignof(Branch) > kWhole);

  static std::uint64_t granuleInCell(Address address) {
    return (address >> kGranuleShift) & ((1u << (kCellShift - kGranuleShift)) - 1);
  }
  /// Cell::within: a record's address, which user space keeps below 2^48, and a granule above it.
  static constexpr unsigned kRecordBits = 48;
  static HeapSegment* recordOf(std::uint64_t word) {
    return static_cast<HeapSegment*>(toPointer(word & ((std::uint64_t{1} << kRecordBits) - 1)));
  }
  void store(const HeapSegment& segment, HeapSegment* value) CISTERN_REQUIRES(mutex_);
  bool overlaps(const HeapSegment& segment) const CISTERN_REQUIRES(mutex_);
  bool overlaps(const HeapSegment& segment, std::uint64_t index) const CISTERN_REQUIRES(mutex_);
  std::atomic<Word>& root(std::uint64_t index) const noexcept {
    return root_[index >> kLeafShift >> kBranchShift];
  }
  static std::atomic<Word>& wordIn(Word branch, std::uint64_t index) noexcept {
    return (*reinterpret_cast<Branch*>(branch))[(index >> kLeafShift) & ((1u << kBranchShift) - 1)];
  }
  static Cell& cellIn(Word leaf, std::uint64_t index) noexcept {
    return (*reinterpret_cast<Leaf*>(leaf))[index & ((1u << kLeafShift) - 1)];
  }
  std::atomic<Word>& branchWord(std::uint64_t index) CISTERN_REQUIRES(mutex_);
  Word leaf(std::uint64_t index) CISTERN_REQUIRES(mutex_);

  /// The words of the first level. They are address space, not memory: only pages that hold a word
  /// are ever backed.
  std::atomic<Word>* const root_;
  Mutex mutex_{LockRank::kSegmentMap};
  std::vector<std::unique_ptr<Branch>> branches_ CISTERN_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Leaf>> leaves_ CISTERN_GUARDED_BY(mutex_);
  std::atomic<std::size_t> host_bytes_{0};  ///< of branches_ and leaves_
};

inline HeapSegment* SegmentMap::find(Address address) const noexcept {
  const std::uint64_t index = address >> kCellShift;
  if (index >= kCells) [[unlikely]]
    return nullptr;
  Word there = root(index).load(std::memory_order_acquire);
  if (there & kWhole) return reinterpret_cast<HeapSegment*>(there - kWhole);
  if (there == 0) [[unlikely]]
    return nullptr;
  there = wordIn(there, index).load(std::memory_order_acquire);
  if (there & kWhole) return reinterpret_cast<HeapSegment*>(there - kWhole);
  if (there == 0) [[unlikely]]
    return nullptr;
  const Cell& g = cellIn(there, index);
  const std::uint64_t within = g.within.load(std::memory_order_acquire);
  if (within != 0 && granuleInCell(address) >= within >> kRecordBits) return recordOf(within);
  return g.at_start.load(std::memory_order_acquire);
}

}  // namespace cistern
