#include "allocator/layout/block_slabs.hpp"

#include <algorithm>
#include <new>

namespace cistern {

BlockSlabs::~BlockSlabs() {
  for (const Slab& slab : slabs_) HostAllocator<Block>().deallocate(slab.records, slab.count);
}

Block* BlockSlabs::fresh() {
  if (untouched_ == 0) grow();
  const Slab& slab = slabs_.back();
  return new (&slab.records[slab.count - untouched_--]) Block;
}

void BlockSlabs::reserve(std::size_t count) noexcept {
  reserved_count_ += count;
  for (; count > 0; --count) {
    Block* const block = take();
    block->next = reserved_;
    reserved_ = block;
  }
}

void BlockSlabs::endReserve(std::size_t count) noexcept {
  reserved_count_ -= count;
  for (; count > 0; --count) {
    Block* const block = reserved_;
    reserved_ = block->next;
    give(block);
  }
}

std::size_t BlockSlabs::countInUse() const {
  std::size_t spare = untouched_ + reserved_count_;
  for (const Block* block = spare_; block; block = block->next) ++spare;
  return records_ - spare;
}

// New records, as a rule one slab, stay untouched until they are taken: most preparations are never
// used.
void BlockSlabs::makeSpare(std::size_t count) {
  while (true) {
    while (untouched_ > 0) give(fresh());  // of the last slab
    grow(count);
    if (untouched_ >= count) return;
    count -= untouched_;
  }
}

// Slabs grow by a quarter of the present records. So a small heap stays small, a large one seldom
// grows, and at most a fifth of the records is ahead of need. The largest slab is one huge page.
void BlockSlabs::grow(std::size_t least) {
  constexpr std::size_t kMost = HostAllocator<Block>::kHugePage / sizeof(Block);
  const std::size_t fewest = records_ < 16 ? 4 : 16;  // many heaps never have more
  const std::size_t count = std::clamp<std::size_t>(std::max(records_ / 4, least), fewest, kMost);
  slabs_.reserve(slabs_.size() + 1);
  slabs_.push_back({HostAllocator<Block>().allocate(count), count});
  records_ += count;
  untouched_ = count;
}

}  // namespace cistern
