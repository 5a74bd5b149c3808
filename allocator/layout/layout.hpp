// Places blocks in segments: best fit with lowest address, carved exactly, neighbours coalesced at
// once. Knows no lock, no thread, no stream and no device; a heap owns one for small requests and
// one for large. Read first: block.hpp, then free_index.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "allocator/layout/block.hpp"
#include "allocator/layout/block_map.hpp"
#include "allocator/layout/block_pool.hpp"
#include "allocator/layout/free_index.hpp"

namespace cistern {

/// When a free block may serve a request, and what becomes of the rest. All in granules.
struct SplitRules {
  /// A remainder of at least this much is split off and stays free.
  std::uint32_t min_remainder = 1;
  /// Blocks of at least this size are never split; requests below it never get one of them.
  std::uint32_t max_split = UINT32_MAX;
  /// How much larger than a request of at least max_split the block that serves it may be.
  std::uint32_t max_non_split_rounding = UINT32_MAX;
};

/// What a layout holds. All byte counts are exact.
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

class Layout {
 public:
  explicit Layout(SplitRules rules = {}) : rules_(rules) {}
  ~Layout() = default;
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;

  /// Takes a segment in, wholly free, with the given epoch. Pre: base and bytes are multiples of a
  /// granule, bytes is below 2 TiB, and it overlaps no segment here. The segment must outlive its
  /// stay. Throws std::bad_alloc, changing nothing.
  void add(Segment& segment, std::uint32_t epoch);
  /// Lets a wholly free segment go. Pre: it is here and segment.whollyFree().
  void remove(Segment& segment) noexcept;

  // ---- Holes (holes.cpp). A segment may have addresses without memory; memory comes and goes in
  // ranges, and is free when it comes and when it goes.

  /// Appends a hole of `granules` to the last segment taken in, or to one that has no block yet,
  /// which is taken in with it. Throws std::bad_alloc, changing nothing.
  void extend(Segment& segment, std::uint32_t granules);
  /// Makes sure that `count` calls of punch, fill and reserveFill find the records that they need.
  /// Throws std::bad_alloc, changing nothing.
  void prepareHoles(unsigned count);
  /// Keeps what one fill needs from everyone else, until that fill is due. Pre: prepared for.
  void reserveFill() noexcept;
  /// It is due: what was kept is there for the next step here.
  void endReserve() noexcept;
  /// [from, to) of a free block becomes part of a hole, which is returned. Pre: prepared for.
  Block* punch(Block& free, Address from, Address to) noexcept;
  /// [from, to) of a hole becomes free memory, stamped with `epoch`. Returns the free block that it
  /// is now part of. Pre: prepared for.
  Block* fill(Block& hole, Address from, Address to, std::uint32_t epoch) noexcept;
  /// The first of the holes, linked by links.right, in no order; null when there is none.
  Block* holes() const { return holes_; }

  /// A block of at least `granules` from the best fitting free one, or null when none fits under
  /// the rules. Its `use` is for the caller to fill. Throws std::bad_alloc, changing nothing.
  Block* allocate(std::uint32_t granules);
  /// The same out of the free block given. Pre: it is free, here, and serves(block, granules).
  Block* allocateFrom(Block& free, std::uint32_t granules);
  /// [at, at + granules) of the free block given, wherever in it that is, and whatever the rules
  /// say of splitting. Throws std::bad_alloc, changing nothing.
  Block* allocateAt(Block& free, Address at, std::uint32_t granules);
  /// Whether the rules let this free block serve that request.
  bool serves(const Block& free, std::uint32_t granules) const {
    if (free.granules < granules) return false;
    if (free.granules < rules_.max_split) [[likely]]
      return true;
    return granules >= rules_.max_split &&
           free.granules - granules <= rules_.max_non_split_rounding;
  }

  /// Takes an allocated or pending block back and coalesces it. `epoch` must not be less than any
  /// before. Returns the free block that it is now part of; `block` itself may be a spare by then.
  Block* release(Block& block, std::uint32_t epoch) noexcept;
  /// Starts loading what release() will look at, for whoever has the block and is about to take the
  /// lock: what follows the lock would not begin before. Another thread may be giving it other
  /// neighbours meanwhile; then the wrong ones are loaded, and nothing more happens.
  CISTERN_RACES static void expectRelease(const Block& block) noexcept {
    __builtin_prefetch(block.prev);
    __builtin_prefetch(block.next);
  }
  /// The program is done with the block, but it is not free yet: forgets its pointer.
  void setPending(Block& block) noexcept;
  /// A whole free block waits as a pending one does.
  void setAside(Block& free) noexcept;
  /// Takes that back: the block is allocated again.
  void reissue(Block& block) noexcept;

  /// The live block that starts at `address`, or null.
  Block* find(Address address) const noexcept {
    Block* block = map_.find(address);
    return block && block->state() == BlockState::kAllocated ? block : nullptr;
  }
  /// The same for whoever has been given the block and not let go of it, at any time:
  /// block_map.hpp.
  Block* peek(Address address) const noexcept { return map_.peek(address); }
  /// The block, in any state, that covers an address of `segment`. Walks the segment.
  static Block* covering(const Segment& segment, Address address) noexcept;
  /// Calls visit(Block&) for every free block of at least `granules`, of 2 MiB or more, in no
  /// order.
  template <class Visit>
  void forEachFree(std::uint32_t granules, Visit visit) const {
    index_.forEachAtLeast(granules, visit);
  }

  const FreeIndex& freeBlocks() const { return index_; }
  /// What freeBlocks() leaves out is in it again, if the host has the memory. For who looks for
  /// memory elsewhere than in allocate, which does so itself.
  void listLeftOut() noexcept { (void)index_.listLeftOut(); }
  LayoutTotals totals() const {
    return {segment_count_, segment_bytes_,    busyBlocks(),
            busyBytes(),    splitFreeBlocks(), splitFreeBytes()};
  }
  std::uint64_t segmentBytes() const { return segment_bytes_; }
  std::uint64_t busyBlocks() const { return map_.size() - index_.blocks(); }
  std::uint64_t busyBytes() const { return segment_bytes_ - index_.bytes(); }
  std::uint64_t splitFreeBlocks() const { return index_.blocks() - whole_.blocks; }
  std::uint64_t splitFreeBytes() const { return index_.bytes() - whole_.bytes; }
  /// By how much these two have risen, each step's net rise added up.
  struct SplitFree {
    std::uint64_t blocks = 0, bytes = 0;
  };
  const SplitFree& splitFreeRises() const { return rises_; }
  Segment* segments() const { return segments_; }
  SplitRules& rules() { return rules_; }
  std::size_t hostBytes() const {
    return pool_.hostBytes() + map_.hostBytes() + index_.hostBytes();
  }

  /// Walks every block of every segment and every bin; aborts on a broken invariant.
  void audit() const;
  /// The same, once in as many calls as there are blocks, so that a step costs no more than a look
  /// at one block: what the audit build does after every step.
  void auditInTurn();

 private:
  Block* place(Block& free, std::uint32_t granules);
  Block* spareFor(Address address);
  void splitOff(Block& block, Block& tail, std::uint32_t granules) noexcept;
  void enlist(Block& block) noexcept;
  void unlist(Block& block) noexcept;
  void link(Segment& segment, Block& first) noexcept;
  void join(Block& lower, Block& upper) noexcept;
  Block* cut(Block& block, Address at) noexcept;
  void listUpper(Block& block, Address at) noexcept;
  void enlistHole(Block& block) noexcept;
  void unlistHole(Block& block) noexcept;
  Block* lastOf(const Segment& segment) const noexcept;
  Block* settleHole(Block& block) noexcept;
  SplitFree splitFree() const { return {splitFreeBlocks(), splitFreeBytes()}; }
  void noteRise(const SplitFree& before) noexcept;
  Block* settleFree(Block& block) noexcept;

  SplitRules rules_;
  FreeIndex index_;
  BlockMap map_;
  BlockPool pool_;
  Segment* segments_ = nullptr;
  Block* holes_ = nullptr;
  std::size_t hole_count_ = 0;
  std::uint64_t segment_count_ = 0;
  std::uint64_t segment_bytes_ = 0;  ///< without their holes
  /// The free blocks that span their segments. All else that is in totals() follows from what the
  /// map and the index count.
  SplitFree whole_;
  SplitFree rises_;
  std::size_t unaudited_steps_ = 0;  ///< used by the audit build only
};

}  // namespace cistern
