#include "allocator/layout/layout.hpp"

#include "allocator/base/check.hpp"
#include "allocator/base/steps.hpp"

namespace cistern {

void Layout::add(Segment& segment, std::uint32_t epoch) {
  CISTERN_CHECK(segment.base % kGranule == 0 && segment.bytes % kGranule == 0 && segment.bytes > 0);
  CISTERN_CHECK(segment.bytes >> kGranuleShift <= UINT32_MAX);
  Block* block = tiling_.spareFor(segment.base);
  Tiling::setPlace(*block, segment, segment.base >> kGranuleShift,
                   std::uint32_t(segment.bytes >> kGranuleShift));
  block->epoch = epoch;
  block->prev = block->next = nullptr;
  segments_.add(segment, *block);
  tiling_.listFree(*block);
  segment_bytes_ += segment.bytes;
}

void Layout::remove(Segment& segment) noexcept {
  CISTERN_CHECK(segment.whollyFree());
  tiling_.unlist(*segment.first);
  tiling_.map.erase(*segment.first);
  tiling_.records.give(segment.first);
  segments_.remove(segment);
  segment_bytes_ -= segment.bytes;
}

void SegmentList::add(Segment& segment, Block& first_block) noexcept {
  segment.first = &first_block;
  segment.prev = nullptr;
  segment.next = first;
  if (first) first->prev = &segment;
  first = &segment;
  ++count;
}

void SegmentList::remove(Segment& segment) noexcept {
  segment.first = nullptr;
  (segment.prev ? segment.prev->next : first) = segment.next;
  if (segment.next) segment.next->prev = segment.prev;
  segment.prev = segment.next = nullptr;
  --count;
}

namespace {

bool isWilderness(const Block& free) {
  const Block* const behind = free.next;
  return behind && behind->isHole() && behind->next == nullptr;
}

}  // namespace

inline Block* Layout::chosen(std::uint32_t granules) {
  Block* best = tiling_.index.bestFit(granules);
  if (rules.preserve_wilderness && best && tiling_.index.blocks() > 1 && isWilderness(*best)) {
    if (Block* const other = tiling_.index.after(*best)) best = other;
  }
  if (best == nullptr || !serves(*best, granules)) [[unlikely]]
    return tiling_.index.listLeftOut() ? chosen(granules) : nullptr;
  return best;
}

Block* Layout::allocate(std::uint32_t granules) {
  Block* const best = chosen(granules);
  return best == nullptr ? nullptr : place(*best, granules);
}

Block* Layout::best(std::uint32_t granules) { return chosen(granules); }

Block* Layout::allocateFrom(Block& free, std::uint32_t granules) { return place(free, granules); }

// Hands out the low part, and splits the rest off. All that may throw comes first.
inline Block* Layout::place(Block& free, std::uint32_t granules) {
  // Loads of all that is touched below start now: at a million blocks nothing is cached.
  __builtin_prefetch(free.links.left);
  __builtin_prefetch(free.links.right);
  __builtin_prefetch(free.next, 1);
  const std::uint32_t rest = free.granules - granules;
  if (rest > 0) tiling_.index.prefetch(rest);
  const bool split = rest > 0 && rest >= rules.min_remainder && free.granules < rules.max_split;
  Block* tail = split ? tiling_.spareFor(free.address() + bytesOf(granules)) : nullptr;
  if (split && free.spansSegment()) [[unlikely]] {  // else what is split off was free before
    tiling_.rises.blocks += 1;
    tiling_.rises.bytes += bytesOf(rest);
  }
  tiling_.unlist(free);
  if (split) {
    Tiling::split(free, *tail, granules);
    tiling_.listFree(*tail);
  }
  free.setState(BlockState::kAllocated);
  CISTERN_AUDIT(auditInTurn());
  return &free;
}

Block* Layout::allocateAt(Block& free, Address at, std::uint32_t granules) {
  const Address end = at + bytesOf(granules);
  CISTERN_ASSERT(free.isFree() && free.address() <= at && end <= free.end());
  tiling_.prepare(2);
  const Tiling::SplitFree before = tiling_.splitFree();
  tiling_.unlist(free);
  if (end < free.end()) tiling_.listFree(*tiling_.cut(free, end));
  Block* block = &free;
  if (at > free.address()) {
    block = tiling_.cut(free, at);
    tiling_.map.insert(*block);
    tiling_.enlist(free);
  }
  block->setState(BlockState::kAllocated);
  tiling_.noteRise(before);
  CISTERN_AUDIT(auditInTurn());
  return block;
}

void Layout::setPending(Block& block) noexcept {
  CISTERN_ASSERT(block.state() == BlockState::kAllocated);
  block.setState(BlockState::kPending);
}

void Layout::setAside(Block& free) noexcept {
  tiling_.unlist(free);
  free.setState(BlockState::kPending);
}

void Layout::reissue(Block& block) noexcept {
  CISTERN_ASSERT(block.state() == BlockState::kPending);
  block.setState(BlockState::kAllocated);
}

Block* Layout::release(Block& block, std::uint32_t epoch) noexcept {
  CISTERN_ASSERT(block.state() == BlockState::kAllocated || block.state() == BlockState::kPending);
  block.prefetchNeighbours();  // both at once: one wait, not two
  block.epoch = epoch;
  const std::uint64_t bytes = block.bytes(), blocks = tiling_.index.blocks();
  Block* whole = tiling_.mergeFree(block);
  if (!whole->spansSegment()) [[likely]] {
    tiling_.rises.blocks += tiling_.index.blocks() > blocks ? 1 : 0;
    tiling_.rises.bytes += bytes;
  }
  CISTERN_AUDIT(auditInTurn());
  return whole;
}

Block* Segment::covering(Address address) const noexcept {
  return AscendingSearch().covering(*this, address);
}

// From the segment's first block upwards and from the address downwards at once. A hole is in no
// map: there the search downwards comes to the block before it.
const Block& Layout::covering(const Segment& segment, Address address) const noexcept {
  CISTERN_ASSERT(segment.base <= address && address < segment.end());
  const Block* up = segment.first;
  Address down = address - address % kGranule;
  std::uint64_t steps = 1;
  for (; up->end() <= address; up = up->next, ++steps) {
    const Block* const at = down >= segment.base ? tiling_.map.find(down) : nullptr;
    if (at != nullptr) {
      up = at->end() > address ? at : at->next;
      break;
    }
    down -= kGranule;
  }
  noteSteps(steps);
  return *up;
}

Block* AscendingSearch::covering(const Segment& segment, Address address) noexcept {
  if (address < segment.base || address >= segment.end()) return nullptr;
  const bool ahead = at_ && at_->segment == &segment && at_->address() <= address;
  if (!ahead) at_ = segment.first;
  std::uint64_t steps = 1;
  for (; at_->end() <= address; at_ = at_->next) ++steps;
  noteSteps(steps);
  return at_;
}

}  // namespace cistern
