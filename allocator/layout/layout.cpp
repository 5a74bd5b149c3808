#include "allocator/layout/layout.hpp"

#include "allocator/base/check.hpp"

namespace cistern {

void Layout::add(Segment& segment, std::uint32_t epoch) {
  CISTERN_CHECK(segment.base % kGrain == 0 && segment.bytes % kGrain == 0 && segment.bytes > 0);
  CISTERN_CHECK(segment.bytes >> kGrainShift <= UINT32_MAX);
  const auto grains = std::uint32_t(segment.bytes >> kGrainShift);
  index_.prepare(grains);
  Block* block = pool_.take();
  block->grain = (segment.base >> kGrainShift) & ((std::uint64_t{1} << 48) - 1);
  block->grains = grains;
  block->epoch = epoch;
  block->prev = block->next = nullptr;
  block->segment = &segment;
  block->setState(BlockState::kFree);
  segment.first = block;
  segment.busy = 0;
  segment.prev = nullptr;
  segment.next = segments_;
  if (segments_) segments_->prev = &segment;
  segments_ = &segment;
  index_.insert(*block);
  ++totals_.segments;
  totals_.segment_bytes += segment.bytes;
}

void Layout::remove(Segment& segment) noexcept {
  CISTERN_CHECK(segment.whollyFree() && segment.first->next == nullptr);
  index_.remove(*segment.first);
  pool_.give(segment.first);
  segment.first = nullptr;
  (segment.prev ? segment.prev->next : segments_) = segment.next;
  if (segment.next) segment.next->prev = segment.prev;
  segment.prev = segment.next = nullptr;
  --totals_.segments;
  totals_.segment_bytes -= segment.bytes;
}

bool Layout::serves(const Block& free, std::uint32_t grains) const {
  if (free.grains < grains) return false;
  if (free.grains < rules_.max_split) return true;
  return grains >= rules_.max_split && free.grains - grains <= rules_.max_non_split_rounding;
}

Block* Layout::allocate(std::uint32_t grains) {
  Block* best = index_.bestFit(grains);
  if (best == nullptr || !serves(*best, grains)) return nullptr;
  return allocateFrom(*best, grains);
}

Block* Layout::allocateFrom(Block& free, std::uint32_t grains) {
  __builtin_prefetch(free.segment);
  __builtin_prefetch(free.links.left);
  __builtin_prefetch(free.links.right);
  map_.prefetch(free.address());
  map_.prepare();
  return carve(free, grains);
}

// Splits the low part off a free block and hands it out. All that may throw comes first.
Block* Layout::carve(Block& block, std::uint32_t grains) {
  Segment& segment = *block.segment;
  const std::uint32_t rest = block.grains - grains;
  const bool split = rest >= rules_.min_remainder && rest > 0 && block.grains < rules_.max_split;
  Block* tail = nullptr;
  if (split) {
    index_.prepare(rest);
    tail = pool_.take();
  }
  index_.remove(block);
  if (!segment.whollyFree()) countSplit(-1, -std::int64_t(block.bytes()));
  if (split) {
    tail->grain = (block.grain + grains) & ((std::uint64_t{1} << 48) - 1);
    tail->grains = rest;
    tail->epoch = block.epoch;
    tail->segment = &segment;
    tail->prev = &block;
    tail->next = block.next;
    if (tail->next) tail->next->prev = tail;
    tail->setState(BlockState::kFree);
    block.next = tail;
    block.grains = grains;
    index_.insert(*tail);
    countSplit(1, std::int64_t(tail->bytes()));
  }
  block.setState(BlockState::kAllocated);
  block.use = {};
  map_.insert(block);
  ++segment.busy;
  ++totals_.busy_blocks;
  totals_.busy_bytes += block.bytes();
  return &block;
}

void Layout::countSplit(std::int64_t blocks, std::int64_t bytes) noexcept {
  totals_.split_free_blocks += std::uint64_t(blocks);
  totals_.split_free_bytes += std::uint64_t(bytes);
}

// Makes a free neighbour part of `block`, which is in no index. `block` keeps its record.
void Layout::absorb(Block& block, Block& neighbour) noexcept {
  index_.remove(neighbour);
  countSplit(-1, -std::int64_t(neighbour.bytes()));
  if (neighbour.epoch > block.epoch) block.epoch = neighbour.epoch;
  if (neighbour.grain < block.grain) {
    block.grain = neighbour.grain;
    block.prev = neighbour.prev;
    if (block.prev) block.prev->next = &block;
    if (block.segment->first == &neighbour) block.segment->first = &block;
  } else {
    block.next = neighbour.next;
    if (block.next) block.next->prev = &block;
  }
  block.grains += neighbour.grains;
  pool_.give(&neighbour);
}

void Layout::retire(Block& block) noexcept {
  CISTERN_ASSERT(block.state() == BlockState::kAllocated);
  map_.erase(block);
  block.setState(BlockState::kPending);
}

// Inserting into the index cannot fail here in practice: only a size whose row was never made would
// allocate, and 520 bytes at that. A program out of host memory ends, as it would in new.
Block* Layout::release(Block& block, std::uint32_t epoch) noexcept {
  // Four independent lines; asking for them together makes one wait of four.
  __builtin_prefetch(block.prev);
  __builtin_prefetch(block.next);
  __builtin_prefetch(block.segment);
  if (block.state() == BlockState::kAllocated) map_.erase(block);
  Segment& segment = *block.segment;
  --segment.busy;
  --totals_.busy_blocks;
  totals_.busy_bytes -= block.bytes();
  block.epoch = epoch;
  if (block.prev && block.prev->isFree()) absorb(block, *block.prev);
  if (block.next && block.next->isFree()) absorb(block, *block.next);
  block.setState(BlockState::kFree);
  index_.insert(block);
  if (!segment.whollyFree()) countSplit(1, std::int64_t(block.bytes()));
  return &block;
}

Block* Layout::covering(const Segment& segment, Address address) noexcept {
  for (Block* b = segment.first; b; b = b->next) {
    if (address >= b->address() && address < b->end()) return b;
  }
  return nullptr;
}

}  // namespace cistern
