// The record of one slice of a segment. All of the layout's knowledge of a slice fits one cache
// line: at a million live blocks an operation costs what its cache misses cost. Owned by a
// BlockSlabs; changed only by the Layout that placed it. Read next: layout.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "allocator/base/sanitizers.hpp"
#include "cistern/types.hpp"

namespace cistern {

struct Segment;

/// All sizes and addresses in the layout are multiples of one granule.
inline constexpr std::uint64_t kGranule = 512;
inline constexpr unsigned kGranuleShift = 9;

/// Bytes to granules, rounded up.
constexpr std::uint64_t granulesFor(std::uint64_t bytes) {
  return (bytes + kGranule - 1) >> kGranuleShift;
}

enum class BlockState : std::uint8_t {
  kUnused,     ///< a spare record; describes no memory
  kFree,       ///< in the free index
  kAllocated,  ///< the program has a pointer to it; Layout::find returns it
  kPending,    ///< freed by the program, but queued work of other streams still uses it
  kHole,       ///< an unmapped range: addresses of the segment with no memory behind them that
               ///< could be handed out
};

/// One slice of a segment.
///
///   next == nullptr || next->address() == address() + bytes()   (and so for prev)
///   state() == kFree  =>  neither neighbour is free              (coalesced at once)
///   state() == kHole  =>  neither neighbour is a hole            (the same)
///   sum of bytes() over a segment's blocks == segment->bytes
struct alignas(64) Block {
  /// The links of a free block in its bin (address_heap.hpp, size_tree.hpp). Or those of a hole in
  /// the list of holes: left and right are its neighbours there.
  struct FreeLinks {
    Block* parent;
    Block* left;
    Block* right;
  };
  /// The engine's data on a block that is in use. The layout never reads it.
  struct InUse {
    std::uint32_t asked;   ///< the low part of the bytes that the program requested
    std::uint32_t holder;  ///< the high part, or the owner of the block
    Stream stream;         ///< the stream it was allocated for
    void* uses;            ///< other streams that use it; null for none
  };

  std::uint64_t granule : 48;  ///< address / 512
  std::uint64_t rank : 8;      ///< free: distance to the nearest missing child. In use: flags()
  std::uint64_t state_bits : 8;
  Block* prev = nullptr;  ///< the neighbour at the lower address
  Block* next = nullptr;  ///< the neighbour at the higher address; also links spare records
  Segment* segment = nullptr;
  std::uint32_t granules = 0;  ///< size / 512
  /// Free: the heap's epoch when the youngest part was freed. In use: the engine's to define.
  std::uint32_t epoch = 0;
  union {
    FreeLinks links;  ///< when free, or a hole
    InUse use;        ///< when allocated or pending
  };

  Block() noexcept : granule(0), rank(0), state_bits(0), links{} {}

  Address address() const { return Address{granule} << kGranuleShift; }
  std::uint64_t bytes() const { return std::uint64_t{granules} << kGranuleShift; }
  Address end() const { return address() + bytes(); }
  BlockState state() const { return BlockState(state_bits); }
  /// Post: flags() == 0.
  void setState(BlockState s) {
    rank = 0;
    state_bits = std::uint8_t(s) & 0xffu;
  }
  /// The engine's to define, while a block is in use.
  std::uint8_t flags() const { return std::uint8_t(rank); }
  void setFlags(unsigned flags) { rank = flags & 0xffu; }
  /// Address and state as one word, which distinguishes a block from earlier ones with its record.
  /// A thread may check whether a record is still that block's while another thread reuses it. The
  /// state is written last, so that the record never looks like the former block.
  CISTERN_RACES std::uint64_t head() const {
    std::uint64_t word = 0;
    std::memcpy(&word, this, sizeof(word));
    return word;
  }
  static Address addressOf(std::uint64_t head) {
    return (head & ((std::uint64_t{1} << 48) - 1)) << kGranuleShift;
  }
  static BlockState stateOf(std::uint64_t head) { return BlockState(head >> 56); }
  /// Starts loading the records that a release of the block will read. For a thread that has the
  /// block and is about to take the lock: loads after the lock would not begin before it. Another
  /// thread may be giving it other neighbours meanwhile. Then the wrong ones are loaded, and
  /// nothing more happens.
  CISTERN_RACES void prefetchNeighbours() const noexcept {
    __builtin_prefetch(prev);
    __builtin_prefetch(next);
  }
  bool spansSegment() const { return prev == nullptr && next == nullptr; }
  bool isFree() const { return state() == BlockState::kFree; }
  bool isHole() const { return state() == BlockState::kHole; }
};

static_assert(sizeof(Block) == 64, "a block is one cache line");

/// Blocks that are in no bin, in no order, linked by links.left and links.right.
class BlockList {
 public:
  Block* first() const { return first_; }
  /// Pre: the block is in no list and in no bin.
  void push(Block& block) noexcept {
    block.links = {nullptr, nullptr, first_};
    if (first_) first_->links.left = &block;
    first_ = &block;
  }
  void remove(Block& block) noexcept {
    (block.links.left ? block.links.left->links.right : first_) = block.links.right;
    if (block.links.right) block.links.right->links.left = block.links.left;
  }

 private:
  Block* first_ = nullptr;
};

/// A range of device addresses that one layout places blocks in.
///
///   first->address() == base;  blocks tile [base, base + bytes)
///   wholly free  <=>  first is free and spans the segment
///
/// It holds no count of its blocks: keeping that would load this line in every operation.
struct Segment {
  Address base = 0;
  std::uint64_t bytes = 0;
  Block* first = nullptr;
  Segment* prev = nullptr;  ///< neighbours in the layout's list, in no order
  Segment* next = nullptr;

  Address end() const { return base + bytes; }
  /// Pre: it is in a layout.
  bool whollyFree() const { return first->isFree() && first->spansSegment(); }
  /// The block, in any state, that covers an address; null for none. Walks the segment.
  Block* covering(Address address) const noexcept;
};

/// Finds the blocks that cover several addresses, by segment and then in ascending order: each
/// segment is walked once. Another order costs a walk from the segment's first block.
class AscendingSearch {
 public:
  /// The block of the segment, in any state, that covers the address; null for none.
  Block* covering(const Segment& segment, Address address) noexcept;
  /// The block found last may have become part of another: the search continues from this one.
  void goOnFrom(Block& block) noexcept { at_ = &block; }
  /// Blocks have changed: the next search starts over.
  void beginAnew() noexcept { at_ = nullptr; }

 private:
  Block* at_ = nullptr;  ///< null, or a block of the segment searched last
};

}  // namespace cistern
