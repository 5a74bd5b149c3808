// Places blocks in segments: best fit with lowest address, carved exactly, neighbours coalesced at
// once. Knows no lock, no thread, no stream and no device; a heap owns one for small requests and
// one for large. It owns the list of segments, and their blocks (tiling.hpp). Read first:
// block.hpp, then free_index.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "allocator/layout/tiling.hpp"

namespace cistern {

/// The conditions for a free block to serve a request, and for splitting it. All in granules.
struct SplitRules {
  /// A remainder of at least this much is split off and stays free.
  std::uint32_t min_remainder = 1;
  /// Blocks of at least this size are never split; requests below it never get one of them.
  std::uint32_t max_split = UINT32_MAX;
  /// For a request of at least max_split: how much larger the block that serves it may be.
  std::uint32_t max_non_split_rounding = UINT32_MAX;
  /// The wilderness is free memory behind which its segment can grow. It serves only requests that
  /// no other block can serve: it can become as large as any request. D. Korn and K.-P. Vo, "In
  /// search of a better malloc", 1985.
  bool preserve_wilderness = false;
};

/// The contents of a layout. All byte counts are exact.
///
///   bytes of free blocks + busy_bytes == segment_bytes
///   split_free_*: free blocks of segments that are not wholly free
struct LayoutTotals {
  std::uint64_t segments = 0;
  std::uint64_t segment_bytes = 0;  ///< of all segments, without their holes
  std::uint64_t busy_blocks = 0;
  std::uint64_t busy_bytes = 0;
  std::uint64_t split_free_blocks = 0;
  std::uint64_t split_free_bytes = 0;
};

/// The segments of a layout, in no order, linked by next.
struct SegmentList {
  void add(Segment& segment, Block& first_block) noexcept;
  void remove(Segment& segment) noexcept;

  Segment* first = nullptr;
  std::uint64_t count = 0;
};

class Layout {
 public:
  using SplitFree = Tiling::SplitFree;

  explicit Layout(SplitRules given = {}) : rules(given) {}

  /// Takes a segment in, wholly free, with the given epoch. Pre: base and bytes are multiples of a
  /// granule, bytes is below 2 TiB, and it overlaps no segment here. The segment must outlive its
  /// stay. Throws std::bad_alloc, changing nothing.
  void add(Segment& segment, std::uint32_t epoch);
  /// Removes a wholly free segment. Pre: it is here and segment.whollyFree().
  void remove(Segment& segment) noexcept;

  // ---- Holes (holes.cpp). A segment may have addresses without memory. Memory comes and goes in
  // ranges, and is free when it comes and when it goes.

  /// Appends a hole of `granules` to the last segment added, or to one without a block, which this
  /// adds. Throws std::bad_alloc, changing nothing.
  void extend(Segment& segment, std::uint32_t granules);
  /// Makes sure that `count` calls of punch, fill and reserveFill find the records they need.
  /// Throws std::bad_alloc, changing nothing.
  void prepareHoles(unsigned count) { tiling_.prepare(count); }
  /// Reserves the records of one fill, until that fill is due. Pre: prepared for.
  void reserveFill() noexcept;
  /// The fill is due: the reserved records are for the next step here.
  void endReserve() noexcept;
  /// [from, to) of a free block becomes part of a hole, which is returned. Pre: prepared for.
  Block* punch(Block& free, Address from, Address to) noexcept;
  /// [from, to) of a hole becomes free memory, stamped with `epoch`. Returns the free block that
  /// now contains it. Pre: prepared for.
  Block* fill(Block& hole, Address from, Address to, std::uint32_t epoch) noexcept;
  /// A block that is in use becomes part of a hole, which is returned: it has no memory behind it,
  /// and is no longer in use. Needs no record.
  Block* vacate(Block& busy) noexcept;
  /// The first of the holes, linked by links.right, in no order; null when there is none.
  Block* holes() const { return tiling_.hole_list.first(); }

  /// A block of at least `granules` from the best fitting free one, or null when none fits under
  /// the rules. The caller fills its `use`. Throws std::bad_alloc, changing nothing.
  Block* allocate(std::uint32_t granules);
  /// The free block that allocate() would take it from, or null.
  Block* best(std::uint32_t granules);
  /// The same out of the free block given. Pre: it is free, here, and serves(block, granules).
  Block* allocateFrom(Block& free, std::uint32_t granules);
  /// [at, at + granules) of the free block given, at any place in it, and whatever the rules of
  /// splitting. Throws std::bad_alloc, changing nothing.
  Block* allocateAt(Block& free, Address at, std::uint32_t granules);
  /// Whether the rules let this free block serve that request.
  bool serves(const Block& free, std::uint32_t granules) const {
    if (free.granules < granules) return false;
    if (free.granules < rules.max_split) [[likely]]
      return true;
    return granules >= rules.max_split && free.granules - granules <= rules.max_non_split_rounding;
  }

  /// Takes an allocated or pending block back and coalesces it. `epoch` must not be less than any
  /// before. Returns the free block that now contains it; `block` itself may be a spare by then.
  Block* release(Block& block, std::uint32_t epoch) noexcept;
  /// The program is done with the block, but it is not free yet: forgets its pointer.
  void setPending(Block& block) noexcept;
  /// Makes a whole free block wait as a pending one does.
  void setAside(Block& free) noexcept;
  /// Undoes that: the block is allocated again.
  void reissue(Block& block) noexcept;

  /// The live block that starts at `address`, or null.
  Block* find(Address address) const noexcept {
    Block* block = tiling_.map.find(address);
    return block && block->state() == BlockState::kAllocated ? block : nullptr;
  }
  /// The same for a caller that owns the block, at any time: block_map.hpp.
  Block* peek(Address address) const noexcept { return tiling_.map.peek(address); }
  /// The block of the segment, in any state, that covers the address. Reads at most as many blocks
  /// as come before it, and at most as many granules as lie from its start to the address. Pre: the
  /// segment is here, and covers the address.
  const Block& covering(const Segment& segment, Address address) const noexcept;
  /// The best fitting free block that serves the request and that `accept`s; null for none. Looks
  /// at as many as FreeIndex::bestFitIf does.
  template <class Accept>
  Block* bestFitIf(std::uint32_t granules, Accept accept) {
    (void)tiling_.index.listLeftOut();
    return tiling_.index.bestFitIf(
        granules, [&](const Block& block) { return serves(block, granules) && accept(block); });
  }
  /// A free block of at least `granules` that `accept`s, whatever the rules; null for none. Looks
  /// at as many as it must.
  template <class Accept>
  Block* findIf(std::uint32_t granules, Accept accept) {
    (void)tiling_.index.listLeftOut();
    return tiling_.index.findIf(granules, accept);
  }
  /// Calls visit(Block&) for every free block of at least `granules`, of 2 MiB or more, in no
  /// order.
  template <class Visit>
  void forEachFree(std::uint32_t granules, Visit visit) {
    (void)tiling_.index.listLeftOut();
    tiling_.index.forEachAtLeast(granules, visit);
  }

  /// The index leaves blocks out for which the host had no memory. The two above retry these first.
  const FreeIndex& freeBlocks() const { return tiling_.index; }
  LayoutTotals totals() const {
    const FreeIndex& index = tiling_.index;
    const SplitFree split = tiling_.splitFree();
    const std::uint64_t busy = tiling_.map.size() - index.blocks();
    return {segments_.count, segment_bytes_, busy, segment_bytes_ - index.bytes(),
            split.blocks,    split.bytes};
  }
  /// The rise of the split free blocks and bytes: the sum of each step's net rise.
  const SplitFree& splitFreeRises() const { return tiling_.rises; }
  Segment* segments() const { return segments_.first; }
  std::size_t hostBytes() const {
    return tiling_.records.hostBytes() + tiling_.map.hostBytes() + tiling_.index.hostBytes();
  }

  /// Walks every block of every segment and every bin; aborts on a broken invariant.
  void audit() const;

  SplitRules rules;

 private:
  Block* chosen(std::uint32_t granules);
  Block* place(Block& free, std::uint32_t granules);
  /// The audit build calls this after every step. It audits once in as many calls as there are
  /// blocks, so that a step costs no more than a look at one block.
  void auditInTurn();

  Tiling tiling_;
  SegmentList segments_;
  std::uint64_t segment_bytes_ = 0;  ///< without their holes
  std::size_t unaudited_steps_ = 0;  ///< used by the audit build only
};

}  // namespace cistern
