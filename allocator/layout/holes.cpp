// Holes: unmapped ranges, which are addresses of a segment with no memory behind them.
#include "allocator/base/check.hpp"
#include "allocator/layout/layout.hpp"

namespace cistern {
namespace {

// A segment that is extended repeatedly ends with a hole, as a rule.
Block* lastOf(const Segment& segment, Block* holes) noexcept {
  for (Block* hole = holes; hole; hole = hole->links.right) {
    if (hole->segment == &segment && hole->next == nullptr) return hole;
  }
  Block* last = segment.first;
  while (last && last->next) last = last->next;
  return last;
}

}  // namespace

void Layout::extend(Segment& segment, std::uint32_t granules) {
  CISTERN_CHECK(segment.base % kGranule == 0 && granules > 0);
  Block* block = tiling_.records.take();
  Tiling::setPlace(*block, segment, segment.end() >> kGranuleShift, granules);
  block->next = nullptr;
  block->prev = lastOf(segment, holes());
  segment.bytes += bytesOf(granules);
  if (Block* const last = block->prev) {
    if (last->isFree() && last->spansSegment()) {  // it is a part of it from now on
      const Tiling::SplitFree before = tiling_.splitFree();
      tiling_.forgetWhole(*last);
      tiling_.noteRise(before);
    }
    last->next = block;
  } else {
    segments_.add(segment, *block);
  }
  (void)tiling_.mergeHole(*block);
}

// A filled range may have to be cut off on either side, and is then in the map.
void Layout::reserveFill() noexcept {
  tiling_.records.reserve(2);
  tiling_.map.reserve();
}

void Layout::endReserve() noexcept {
  tiling_.records.endReserve(2);
  tiling_.map.endReserve();
}

Block* Tiling::mergeHole(Block& block) noexcept {
  block.setState(BlockState::kHole);
  Block* one = &block;
  if (block.next && block.next->isHole()) {
    unlistHole(*block.next);
    join(block, *block.next);
  }
  if (block.prev && block.prev->isHole()) {
    one = block.prev;
    unlistHole(*one);
    join(*one, block);
  }
  enlistHole(*one);
  return one;
}

Block* Layout::punch(Block& free, Address from, Address to) noexcept {
  CISTERN_ASSERT(free.isFree() && free.address() <= from && from < to && to <= free.end());
  const Tiling::SplitFree before = tiling_.splitFree();
  tiling_.unlist(free);
  segment_bytes_ -= to - from;
  if (to < free.end()) tiling_.listFree(*tiling_.cut(free, to));
  Block* middle = &free;
  if (from > free.address()) {
    middle = tiling_.cut(free, from);
    tiling_.enlist(free);
  } else {
    tiling_.map.erase(free);
  }
  middle = tiling_.mergeHole(*middle);
  tiling_.noteRise(before);
  CISTERN_AUDIT(auditInTurn());
  return middle;
}

Block* Layout::vacate(Block& busy) noexcept {
  CISTERN_ASSERT(!busy.isFree() && !busy.isHole());
  segment_bytes_ -= busy.bytes();
  tiling_.map.erase(busy);
  Block* const hole = tiling_.mergeHole(busy);
  CISTERN_AUDIT(auditInTurn());
  return hole;
}

Block* Layout::fill(Block& hole, Address from, Address to, std::uint32_t epoch) noexcept {
  CISTERN_ASSERT(hole.isHole() && hole.address() <= from && from < to && to <= hole.end());
  const Tiling::SplitFree before = tiling_.splitFree();
  tiling_.unlistHole(hole);
  segment_bytes_ += to - from;
  if (to < hole.end()) tiling_.enlistHole(*tiling_.cut(hole, to));
  Block* middle = &hole;
  if (from > hole.address()) {
    middle = tiling_.cut(hole, from);
    tiling_.enlistHole(hole);
  }
  middle->epoch = epoch;
  tiling_.map.insert(*middle);
  Block* whole = tiling_.mergeFree(*middle);
  tiling_.noteRise(before);
  CISTERN_AUDIT(auditInTurn());
  return whole;
}

}  // namespace cistern
