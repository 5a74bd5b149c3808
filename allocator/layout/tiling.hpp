// The blocks that tile a layout's segments: cut in two, joined again, free or holes. It owns their
// records, the index of free blocks, the list of holes and the map from addresses to blocks. It
// counts free blocks and bytes. Placing and freeing (layout.cpp) and making holes (holes.cpp)
// consist of its steps. Nearly every request that no cache serves takes these steps: hence they are
// inline. No lock: the owner (a heap) serialises.
//
//   a free block is in the index, a hole in the list of holes, any other block in neither
//   every block except holes is in the map
#pragma once

#include <algorithm>

#include "allocator/layout/block_map.hpp"
#include "allocator/layout/block_slabs.hpp"
#include "allocator/layout/free_index.hpp"

namespace cistern {

constexpr std::uint64_t bytesOf(std::uint32_t granules) {
  return std::uint64_t{granules} << kGranuleShift;
}

class Tiling {
 public:
  struct SplitFree {
    std::uint64_t blocks = 0, bytes = 0;
  };

  /// A record for a block that will soon be in the map, without fail. Throws std::bad_alloc,
  /// changing nothing.
  Block* spareFor(Address address) {
    map.prefetch(address);
    map.prepare();
    return records.take();
  }
  /// Makes sure that that many holes can be made and filled. Throws std::bad_alloc, changing
  /// nothing.
  void prepare(unsigned count) {
    records.prepare(std::size_t{count} * 2, map.size() + holes);
    map.prepare(std::size_t{count} * 2);
  }
  /// Notes the place of a new block. `granule`: its address, in granules.
  static void setPlace(Block& block, Segment& segment, std::uint64_t granule,
                       std::uint32_t granules) {
    constexpr std::uint64_t kMask = (std::uint64_t{1} << 48) - 1;  // of Block::granule
    block.granule = granule & kMask;
    block.granules = granules;
    block.segment = &segment;
  }

  /// Makes a block that is in no index free, and puts it there.
  void enlist(Block& block) noexcept {
    block.setState(BlockState::kFree);
    index.insert(block);
    if (block.spansSegment()) [[unlikely]] {
      whole.blocks += 1;
      whole.bytes += block.bytes();
    }
  }
  /// Takes a free block out of the index.
  void unlist(Block& block) noexcept {
    index.remove(block);
    if (block.spansSegment()) [[unlikely]]
      forgetWhole(block);
  }
  /// A free block no longer spans its segment.
  void forgetWhole(const Block& block) noexcept {
    whole.blocks -= 1;
    whole.bytes -= block.bytes();
  }
  void enlistHole(Block& block) noexcept {
    hole_list.push(block);
    ++holes;
  }
  void unlistHole(Block& block) noexcept {
    hole_list.remove(block);
    --holes;
  }

  /// Makes `tail` the upper part of a block that is in no list; the block keeps `granules`. `tail`
  /// has the same state, and is in no list and no map.
  static void split(Block& block, Block& tail, std::uint32_t granules) noexcept {
    setPlace(tail, *block.segment, block.granule + granules, block.granules - granules);
    tail.epoch = block.epoch;
    tail.prev = &block;
    tail.next = block.next;
    if (tail.next) tail.next->prev = &tail;
    block.next = &tail;
    block.granules = granules;
  }
  /// The same at an address inside it. Pre: prepared for. Returns the upper part.
  Block* cut(Block& block, Address at) noexcept {
    Block* const upper = records.take();
    split(block, *upper, std::uint32_t((at - block.address()) >> kGranuleShift));
    upper->setState(block.state());
    return upper;
  }
  /// Makes a block that is in no list and no map a free block of its own.
  void listFree(Block& block) noexcept {
    map.insert(block);
    enlist(block);
  }
  /// Makes `upper` part of its lower neighbour. Both are in no index, and `upper` in the map unless
  /// it is a hole. As the lower record stays, a segment's first block never changes.
  void join(Block& lower, Block& upper) noexcept {
    if (!upper.isHole()) map.erase(upper);
    lower.granules += upper.granules;
    lower.epoch = std::max(lower.epoch, upper.epoch);
    lower.next = upper.next;
    if (lower.next) lower.next->prev = &lower;
    records.give(&upper);
  }

  /// Frees a block that is in no list, but in the map, and joins it with the free blocks beside it.
  Block* mergeFree(Block& block) noexcept {
    block.setState(BlockState::kFree);
    Block* one = &block;
    if (block.next && block.next->isFree()) {
      index.remove(*block.next);  // it has a neighbour, and spans no segment
      join(block, *block.next);
    }
    if (block.prev && block.prev->isFree()) {
      one = block.prev;
      index.remove(*one);
      join(*one, block);
    }
    enlist(*one);
    return one;
  }
  /// Makes a block that is in no list a hole, and joins it with the holes beside it.
  Block* mergeHole(Block& block) noexcept;

  /// Free blocks of segments that are not wholly free.
  SplitFree splitFree() const {
    return {index.blocks() - whole.blocks, index.bytes() - whole.bytes};
  }
  /// Adds their rise since `before`.
  void noteRise(const SplitFree& before) noexcept {
    const SplitFree now = splitFree();
    rises.blocks += now.blocks > before.blocks ? now.blocks - before.blocks : 0;
    rises.bytes += now.bytes > before.bytes ? now.bytes - before.bytes : 0;
  }

  FreeIndex index;
  BlockMap map;
  BlockSlabs records;
  BlockList hole_list;
  std::size_t holes = 0;
  SplitFree whole;  ///< the free blocks that span their segments
  SplitFree rises;  ///< each step's net rise of splitFree(), added up
};

}  // namespace cistern
