// Holes: addresses of a segment with no memory behind them. See layout.hpp.
#include "allocator/base/check.hpp"
#include "allocator/layout/layout.hpp"
#include "allocator/layout/steps.hpp"

namespace cistern {

// A segment that is extended time and again ends with a hole, as a rule.
Block* Layout::lastOf(const Segment& segment) const noexcept {
  for (Block* hole = holes_; hole; hole = hole->links.right) {
    if (hole->segment == &segment && hole->next == nullptr) return hole;
  }
  Block* last = segment.first;
  while (last && last->next) last = last->next;
  return last;
}

void Layout::extend(Segment& segment, std::uint32_t granules) {
  CISTERN_CHECK(segment.base % kGranule == 0 && granules > 0);
  Block* block = pool_.take();
  block->granule = (segment.end() >> kGranuleShift) & kGranuleMask;
  block->granules = granules;
  block->segment = &segment;
  block->next = nullptr;
  block->prev = lastOf(segment);
  segment.bytes += std::uint64_t{granules} << kGranuleShift;
  if (block->prev == nullptr) {
    link(segment, *block);
  } else {
    // What spanned the segment is a part of it from now on.
    const Block& last = *block->prev;
    if (last.isFree() && last.spansSegment()) {
      const SplitFree before = splitFree();
      whole_.blocks -= 1;
      whole_.bytes -= last.bytes();
      noteRise(before);
    }
    block->prev->next = block;
  }
  (void)settleHole(*block);
}

void Layout::prepareHoles(unsigned count) {
  pool_.prepare(std::size_t{count} * 2, map_.size() + hole_count_);
  map_.prepare(std::size_t{count} * 2);
}

// What is filled may have to be cut off on either side, and is then in the map.
void Layout::reserveFill() noexcept {
  pool_.reserve(2);
  map_.reserve();
}

void Layout::endReserve() noexcept {
  pool_.endReserve(2);
  map_.endReserve();
}

// Makes a block that is in no list a hole, one with the holes beside it.
Block* Layout::settleHole(Block& block) noexcept {
  block.setState(BlockState::kHole);
  Block* whole = &block;
  if (block.next && block.next->isHole()) {
    unlistHole(*block.next);
    join(block, *block.next);
  }
  if (block.prev && block.prev->isHole()) {
    whole = block.prev;
    unlistHole(*whole);
    join(*whole, block);
  }
  enlistHole(*whole);
  return whole;
}

void Layout::enlistHole(Block& block) noexcept {
  block.links = {nullptr, nullptr, holes_};
  if (holes_) holes_->links.left = &block;
  holes_ = &block;
  ++hole_count_;
}

void Layout::unlistHole(Block& block) noexcept {
  (block.links.left ? block.links.left->links.right : holes_) = block.links.right;
  if (block.links.right) block.links.right->links.left = block.links.left;
  --hole_count_;
}

// Cuts a block that is in no list in two at an address inside it; returns the upper one, which is
// of the same state and in no list and no map.
Block* Layout::cut(Block& block, Address at) noexcept {
  Block* upper = pool_.take();
  upper->granule = (at >> kGranuleShift) & kGranuleMask;
  upper->granules = std::uint32_t((block.end() - at) >> kGranuleShift);
  upper->epoch = block.epoch;
  upper->segment = block.segment;
  upper->setState(block.state());
  upper->prev = &block;
  upper->next = block.next;
  if (upper->next) upper->next->prev = upper;
  block.next = upper;
  block.granules -= upper->granules;
  return upper;
}

// Cuts a free block that is in no list, and makes the upper part a free block of its own.
void Layout::listUpper(Block& block, Address at) noexcept {
  Block* upper = cut(block, at);
  map_.insert(*upper);
  enlist(*upper);
}

Block* Layout::punch(Block& free, Address from, Address to) noexcept {
  CISTERN_ASSERT(free.isFree() && free.address() <= from && from < to && to <= free.end());
  const SplitFree before = splitFree();
  unlist(free);
  segment_bytes_ -= to - from;
  if (to < free.end()) listUpper(free, to);
  Block* middle = &free;
  if (from > free.address()) {
    middle = cut(free, from);
    enlist(free);
  } else {
    map_.erase(free);
  }
  middle = settleHole(*middle);
  noteRise(before);
  CISTERN_AUDIT(auditInTurn());
  return middle;
}

Block* Layout::fill(Block& hole, Address from, Address to, std::uint32_t epoch) noexcept {
  CISTERN_ASSERT(hole.isHole() && hole.address() <= from && from < to && to <= hole.end());
  const SplitFree before = splitFree();
  unlistHole(hole);
  segment_bytes_ += to - from;
  if (to < hole.end()) enlistHole(*cut(hole, to));
  Block* middle = &hole;
  if (from > hole.address()) {
    middle = cut(hole, from);
    enlistHole(hole);
  }
  middle->epoch = epoch;
  map_.insert(*middle);
  Block* whole = settleFree(*middle);
  noteRise(before);
  CISTERN_AUDIT(auditInTurn());
  return whole;
}

}  // namespace cistern
