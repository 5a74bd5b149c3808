#include "allocator/layout/layout.hpp"

#include "allocator/base/check.hpp"
#include "allocator/layout/steps.hpp"

namespace cistern {
// A record for a free block that will then be placed without fail, and soon.
inline Block* Layout::spareFor(Address address) {
  map_.prefetch(address);
  map_.prepare();
  return pool_.take();
}

// Makes `tail` the free upper part of `block`, which is in no index and keeps `granules`.
inline void Layout::splitOff(Block& block, Block& tail, std::uint32_t granules) noexcept {
  tail.granule = (block.granule + granules) & kGranuleMask;
  tail.granules = block.granules - granules;
  tail.epoch = block.epoch;
  tail.segment = block.segment;
  tail.prev = &block;
  tail.next = block.next;
  if (tail.next) tail.next->prev = &tail;
  block.next = &tail;
  block.granules = granules;
  map_.insert(tail);
  enlist(tail);
}

void Layout::add(Segment& segment, std::uint32_t epoch) {
  CISTERN_CHECK(segment.base % kGranule == 0 && segment.bytes % kGranule == 0 && segment.bytes > 0);
  CISTERN_CHECK(segment.bytes >> kGranuleShift <= UINT32_MAX);
  const auto granules = std::uint32_t(segment.bytes >> kGranuleShift);
  Block* block = spareFor(segment.base);
  block->granule = (segment.base >> kGranuleShift) & kGranuleMask;
  block->granules = granules;
  block->epoch = epoch;
  block->prev = block->next = nullptr;
  block->segment = &segment;
  link(segment, *block);
  map_.insert(*block);
  enlist(*block);
  segment_bytes_ += segment.bytes;
}

// Takes a segment in whose first block is given.
void Layout::link(Segment& segment, Block& first) noexcept {
  segment.first = &first;
  segment.prev = nullptr;
  segment.next = segments_;
  if (segments_) segments_->prev = &segment;
  segments_ = &segment;
  ++segment_count_;
}

void Layout::remove(Segment& segment) noexcept {
  CISTERN_CHECK(segment.whollyFree());
  unlist(*segment.first);
  map_.erase(*segment.first);
  pool_.give(segment.first);
  segment.first = nullptr;
  (segment.prev ? segment.prev->next : segments_) = segment.next;
  if (segment.next) segment.next->prev = segment.prev;
  segment.prev = segment.next = nullptr;
  --segment_count_;
  segment_bytes_ -= segment.bytes;
}

Block* Layout::allocate(std::uint32_t granules) {
  Block* best = index_.bestFit(granules);
  if (best == nullptr || !serves(*best, granules)) [[unlikely]]
    return index_.listLeftOut() ? allocate(granules) : nullptr;
  return place(*best, granules);
}

Block* Layout::allocateFrom(Block& free, std::uint32_t granules) { return place(free, granules); }

// Hands out the low part, and splits the rest off. All that may throw comes first.
inline Block* Layout::place(Block& free, std::uint32_t granules) {
  // Whatever will be touched below starts on its way now: at a million blocks nothing is cached.
  __builtin_prefetch(free.links.left);
  __builtin_prefetch(free.links.right);
  __builtin_prefetch(free.next, 1);
  const std::uint32_t rest = free.granules - granules;
  if (rest > 0) index_.prefetch(rest);
  const bool split = rest > 0 && rest >= rules_.min_remainder && free.granules < rules_.max_split;
  Block* tail = split ? spareFor(free.address() + bytesOf(granules)) : nullptr;
  if (split && free.spansSegment()) [[unlikely]] {  // else what is split off was free before
    rises_.blocks += 1;
    rises_.bytes += bytesOf(rest);
  }
  unlist(free);
  if (split) splitOff(free, *tail, granules);
  free.setState(BlockState::kAllocated);
  CISTERN_AUDIT(auditInTurn());
  return &free;
}

Block* Layout::allocateAt(Block& free, Address at, std::uint32_t granules) {
  CISTERN_ASSERT(free.isFree() && free.address() <= at && at + bytesOf(granules) <= free.end());
  prepareHoles(2);
  const auto below = std::uint32_t((at - free.address()) >> kGranuleShift);
  const std::uint32_t above = free.granules - below - granules;
  const SplitFree before = splitFree();
  unlist(free);
  if (above > 0) listUpper(free, at + bytesOf(granules));
  Block* block = &free;
  if (below > 0) {
    block = cut(free, at);
    map_.insert(*block);
    enlist(free);
  }
  block->setState(BlockState::kAllocated);
  noteRise(before);
  CISTERN_AUDIT(auditInTurn());
  return block;
}

void Layout::setPending(Block& block) noexcept {
  CISTERN_ASSERT(block.state() == BlockState::kAllocated);
  block.setState(BlockState::kPending);
}

void Layout::setAside(Block& free) noexcept {
  unlist(free);
  free.setState(BlockState::kPending);
}

void Layout::reissue(Block& block) noexcept {
  CISTERN_ASSERT(block.state() == BlockState::kPending);
  block.setState(BlockState::kAllocated);
}

Block* Layout::release(Block& block, std::uint32_t epoch) noexcept {
  CISTERN_ASSERT(block.state() == BlockState::kAllocated || block.state() == BlockState::kPending);
  __builtin_prefetch(block.prev);  // both at once: one wait, not two
  __builtin_prefetch(block.next);
  block.epoch = epoch;
  const std::uint64_t bytes = block.bytes(), blocks = index_.blocks();
  Block* whole = settleFree(block);
  if (!whole->spansSegment()) [[likely]] {
    rises_.blocks += index_.blocks() > blocks ? 1 : 0;
    rises_.bytes += bytes;
  }
  CISTERN_AUDIT(auditInTurn());
  return whole;
}

Block* Layout::covering(const Segment& segment, Address address) noexcept {
  for (Block* b = segment.first; b; b = b->next) {
    if (address >= b->address() && address < b->end()) return b;
  }
  return nullptr;
}

}  // namespace cistern
